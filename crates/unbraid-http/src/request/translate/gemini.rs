//! `streamGenerateContent` of Gemini and Vertex AI.

mod parts;

use serde_json::{Map, Value, json};

use super::{
    body::Body,
    messages::{self, Turn},
    options::{self, Format},
    reader::Reader,
    tools::{self, Tool, ToolChoice},
};
use crate::request::{RequestError, requested::Choices};

pub(super) use self::parts::is_own_part;

/// Fields of the API itself.
const OWN: [&str; 5] = [
    "safetySettings",
    "cachedContent",
    "labels",
    "serviceTier",
    "modelArmorConfig",
];

pub(super) fn body(
    request: &mut Reader<'_>,
    choices: Choices,
) -> Result<Map<String, Value>, RequestError> {
    let model = request.text("model")?.unwrap_or_default(); // it is part of the address
    let mut body = Body::default();
    let (system, turns) = messages::split_system(messages::take(request)?)?;
    let mut instructions = Vec::new();
    for part in system.into_iter().flat_map(|content| content.parts) {
        instructions.push(parts::part(part)?);
    }
    if !instructions.is_empty() {
        body.set("systemInstruction", json!({ "parts": instructions }));
    }
    body.set("contents", contents(turns)?);
    set_tools(request, &mut body)?;
    let config = generation_config(request, choices, model)?;
    body.set_object("generationConfig", config);
    body.copy(request, &OWN);
    Ok(body.into_fields())
}

fn contents(turns: Vec<Turn<'_>>) -> Result<Vec<Value>, RequestError> {
    let mut contents: Vec<Value> = Vec::new();
    let mut results: Vec<Value> = Vec::new();
    for turn in turns {
        // The results of the calls of one answer are one content.
        if let Turn::Result(result) = turn {
            results.push(parts::function_response(result)?);
            continue;
        }
        flush(&mut results, &mut contents);
        match turn {
            Turn::User(user) => {
                let parts = user.parts.into_iter().map(parts::part);
                let parts: Vec<Value> = parts.collect::<Result<_, _>>()?;
                contents.push(json!({ "role": "user", "parts": parts }));
            }
            Turn::Assistant(answer) => {
                contents.push(json!({ "role": "model", "parts": parts::answer(answer)? }));
            }
            Turn::System(_) | Turn::Result(_) => {} // separated above
        }
    }
    flush(&mut results, &mut contents);
    Ok(contents)
}

fn flush(results: &mut Vec<Value>, contents: &mut Vec<Value>) {
    if !results.is_empty() {
        let parts = std::mem::take(results);
        contents.push(json!({ "role": "user", "parts": parts }));
    }
}

fn set_tools(request: &mut Reader<'_>, body: &mut Body) -> Result<(), RequestError> {
    // Gemini's own tools are objects with one field: `{"googleSearch":{}}`.
    let is_own = |tool: &Value| tool.get("type").is_none();
    let tools = tools::take(request, is_own)?;
    let is_strict = tools::has_strict(&tools);
    let (mut functions, mut own) = (Vec::new(), Vec::new());
    for tool in tools {
        match tool {
            Tool::Own(tool) => own.push(tool.clone()),
            Tool::Custom(tool) => return Err(tools::refuse_custom(&tool)),
            Tool::Function(function) => {
                let mut declaration = Body::default();
                declaration.set("name", function.name);
                declaration.set_some("description", function.description);
                declaration.set_some("parametersJsonSchema", function.parameters.cloned());
                function.rest.finish()?;
                functions.push(Value::from(declaration));
            }
        }
    }
    let functions = (!functions.is_empty()).then(|| json!({ "functionDeclarations": functions }));
    let tools: Vec<Value> = functions.into_iter().chain(own).collect();
    body.set_list("tools", tools);
    let mut config = Body::own(request, "toolConfig")?;
    if let Some(calling) = function_calling(request, is_strict)? {
        config.add(request, "tool_choice", "functionCallingConfig", calling)?;
    }
    body.set_object("toolConfig", config);
    Ok(())
}

/// Which functions the model has to call. Arguments that have to match their schema are a mode, too; with `ANY` they always
/// match.
fn function_calling(
    request: &mut Reader<'_>,
    is_strict: bool,
) -> Result<Option<Value>, RequestError> {
    let auto = if is_strict { "VALIDATED" } else { "AUTO" };
    Ok(match ToolChoice::take(request)? {
        None if !is_strict => None,
        None | Some(ToolChoice::Auto) => Some(json!({ "mode": auto })),
        Some(ToolChoice::None) => Some(json!({ "mode": "NONE" })),
        Some(ToolChoice::Required) => Some(json!({ "mode": "ANY" })),
        Some(ToolChoice::Function(name)) => {
            Some(json!({ "mode": "ANY", "allowedFunctionNames": [name] }))
        }
        Some(ToolChoice::Custom(_)) => {
            return Err(request.refuse("tool_choice", "it has no custom tools"));
        }
    })
}

fn generation_config(
    request: &mut Reader<'_>,
    choices: Choices,
    model: &str,
) -> Result<Body, RequestError> {
    const NAMES: [(&str, &str); 9] = [
        ("temperature", "temperature"),
        ("top_p", "topP"),
        ("top_k", "topK"),
        ("seed", "seed"),
        ("presence_penalty", "presencePenalty"),
        ("frequency_penalty", "frequencyPenalty"),
        ("logprobs", "responseLogprobs"),
        ("top_logprobs", "logprobs"),
        ("thinkingConfig", "thinkingConfig"),
    ];
    let mut config = Body::own(request, "generationConfig")?;
    if choices == Choices::One {
        config.remove("candidateCount");
    }
    if let Some(n) = options::choices(request, choices) {
        config.add(request, "n", "candidateCount", n)?;
    }
    if let Some(tokens) = options::max_tokens(request)? {
        config.add(request, "max_tokens", "maxOutputTokens", tokens.clone())?;
    }
    for (name, own) in NAMES {
        config.rename(request, name, own)?;
    }
    if let Some(stop) = options::stop(request) {
        config.add(request, "stop", "stopSequences", stop)?;
    }
    let (name, mime) = ("response_format", "responseMimeType");
    match Format::take(request)? {
        Format::Text => {}
        Format::Json => config.add(request, name, mime, "application/json")?,
        Format::Schema(schema) => {
            config.add(request, name, mime, "application/json")?;
            config.add(request, name, "responseJsonSchema", schema.into_value()?)?;
        }
    }
    if let Some(effort) = request.text("reasoning_effort")? {
        let thinking = thinking(model, effort);
        let thinking =
            thinking.ok_or_else(|| request.refuse("reasoning_effort", "it has no such level"))?;
        config.add(request, "reasoning_effort", "thinkingConfig", thinking)?;
    }
    Ok(config)
}

/// How much a model thinks. Gemini 2.5 has a budget of tokens in place of the levels, which it refuses; the numbers are those of
/// Google's own interface in the format of OpenAI.
fn thinking(model: &str, effort: &str) -> Option<Value> {
    if !model.contains("gemini-2.5") {
        let is_level = matches!(effort, "minimal" | "low" | "medium" | "high" | "xhigh");
        return is_level.then(|| json!({ "thinkingLevel": effort }));
    }
    let budget = match effort {
        "none" => 0,
        "minimal" | "low" => 1024,
        "medium" => 8192,
        "high" => 24_576,
        _ => return None,
    };
    Some(json!({ "thinkingBudget": budget }))
}
