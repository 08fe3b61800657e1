//! The requests of the tests, and the property that each of them is meant to show.

use serde_json::{Value, json};

use crate::answer::{Answer, ChoiceContent};

/// One request. Its seed makes the choices of every answer equal.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) request: Value,
    /// Whether an answer shows what the case is for. Not every seed shows it, but at least one case of each kind must.
    pub(crate) shows: fn(&Answer) -> bool,
}

impl Case {
    fn new(name: &str, seed: u64, n: u64, fields: Value, shows: fn(&Answer) -> bool) -> Self {
        let mut request = request(seed, n);
        let is_chat = fields.get("prompt").is_none();
        let object = request.as_object_mut().unwrap();
        if is_chat {
            object.insert("messages".into(), question());
        }
        object.extend(fields.as_object().unwrap().clone());
        Self {
            name: format!("{name}-n{n}-seed{seed}"),
            request,
            shows,
        }
    }

    pub(crate) fn is_chat(&self) -> bool {
        self.request.get("prompt").is_none()
    }

    pub(crate) fn path(&self) -> &'static str {
        if self.is_chat() {
            "/chat/completions"
        } else {
            "/completions"
        }
    }

    pub(crate) fn n(&self) -> u64 {
        self.request["n"].as_u64().unwrap()
    }

    /// The name without the seed and `n`.
    pub(crate) fn kind(&self) -> &str {
        self.name
            .split_once("-n")
            .map_or(&self.name, |(kind, _)| kind)
    }

    /// Whether the server counts tokens. For a text completion this engine always does.
    pub(crate) fn counts(&self) -> bool {
        self.request["stream_options"]["include_usage"] != false
    }
}

/// A chat of `n` choices.
pub(crate) fn chat(name: &str, seed: u64, n: u64, fields: Value) -> Case {
    Case::new(name, seed, n, fields, |_| true)
}

/// A request for an endless answer.
pub(crate) fn endless(n: u64) -> Value {
    chat(
        "endless",
        1,
        n,
        json!({ "ignore_eos": true, "max_tokens": -1 }),
    )
    .request
}

pub(crate) fn all() -> Vec<Case> {
    let mut cases = Vec::new();
    for n in [1, 2, 4, 8] {
        cases.push(Case::new("chat", n, n, json!({}), different_choices));
        cases.push(chat("uncounted", 20 + n, n, uncounted()));
        cases.push(Case::new("text", n, n, prompt(), different_choices));
    }
    for seed in 1..=3 {
        for n in [4, 8] {
            cases.push(Case::new(
                "tools",
                seed,
                n,
                tools("auto"),
                parallel_calls_in_some,
            ));
            cases.push(Case::new("reasoning", seed, n, reasoning(), all_reasoning));
        }
        let required = tools("required");
        cases.push(Case::new("required", seed, 3, required, |a| {
            a.values().all(|choice| !choice.calls.is_empty())
        }));
        cases.push(Case::new(
            "tools-cut",
            seed,
            4,
            cut(tools("auto"), 9),
            |a| {
                a.values()
                    .any(|choice| is_cut(choice) && !choice.calls.is_empty())
            },
        ));
        cases.push(Case::new("cut", seed, 8, json!({ "max_tokens": 7 }), |a| {
            a.values().any(is_cut)
        }));
        cases.push(Case::new("text-cut", seed, 4, cut(prompt(), 7), |a| {
            a.values().any(is_cut)
        }));
        let stop = json!({ "stop": [" harbour", "."] });
        cases.push(Case::new("stop", seed, 4, stop, |a| {
            let stopped = |choice: &ChoiceContent| {
                !choice.text.contains(['.']) && !choice.text.contains(" harbour")
            };
            a.values().all(stopped)
        }));
    }
    cases.push(chat(
        "logprobs",
        1,
        2,
        json!({ "logprobs": true, "top_logprobs": 2 }),
    ));
    let timed = json!({ "timings_per_token": true, "return_progress": true });
    cases.push(chat("timed", 1, 4, timed));
    cases.push(Case::new("object", 1, 3, object(), |a| {
        let is_object = |choice: &ChoiceContent| {
            serde_json::from_str(&choice.text).is_ok_and(|v: Value| v.is_object())
        };
        a.values().any(is_object)
    }));
    cases
}

/// The fields that make an answer depend only on its seed.
fn request(seed: u64, n: u64) -> Value {
    json!({
        "model": "tiny", "n": n, "seed": seed, "max_tokens": 160,
        "temperature": 1, "top_k": 0, "top_p": 1, "min_p": 0,
        "chat_template_kwargs": { "enable_thinking": false },
    })
}

fn question() -> Value {
    json!([{ "role": "user", "content": "How is the wind?" }])
}

/// A prompt that ends in a space, after which the model begins a sentence.
fn prompt() -> Value {
    json!({ "prompt": "Of the harbour: " })
}

fn uncounted() -> Value {
    json!({ "stream_options": { "include_usage": false } })
}

fn reasoning() -> Value {
    json!({ "chat_template_kwargs": { "enable_thinking": true } })
}

fn cut(mut fields: Value, tokens: u32) -> Value {
    fields["max_tokens"] = tokens.into();
    fields
}

fn tools(choice: &str) -> Value {
    let harbour = json!({ "type": "string", "maxLength": 12 });
    let unit = json!({ "type": "string", "enum": ["knots", "beaufort"] });
    let tools = [
        tool(
            "get_wind",
            json!({ "harbour": harbour, "unit": unit }),
            json!(["harbour", "unit"]),
        ),
        tool(
            "get_tide",
            json!({ "day": { "type": "string", "maxLength": 9 } }),
            json!(["day"]),
        ),
        tool("ring_bell", json!({}), json!([])),
    ];
    json!({ "tools": tools, "tool_choice": choice, "parallel_tool_calls": true })
}

fn tool(name: &str, properties: Value, required: Value) -> Value {
    let parameters = json!({
        "type": "object", "properties": properties, "required": required, "additionalProperties": false,
    });
    json!({ "type": "function", "function": { "name": name, "parameters": parameters } })
}

fn object() -> Value {
    let schema = json!({
        "type": "object",
        "properties": { "boat": { "type": "string", "maxLength": 8 }, "home": { "type": "boolean" } },
        "required": ["boat", "home"], "additionalProperties": false,
    });
    let format =
        json!({ "type": "json_schema", "json_schema": { "name": "boat", "schema": schema } });
    json!({ "response_format": format })
}

/// Whether the choices differ, and have characters that span two tokens.
fn different_choices(answer: &Answer) -> bool {
    let texts: std::collections::BTreeSet<&str> =
        answer.values().map(|choice| &*choice.text).collect();
    texts.len() > answer.len() / 2 && texts.iter().any(|text| !text.is_ascii())
}

fn parallel_calls_in_some(answer: &Answer) -> bool {
    let calls = |count: fn(usize) -> bool| answer.values().any(|choice| count(choice.calls.len()));
    calls(|calls| calls == 0) && calls(|calls| calls > 1)
}

fn all_reasoning(answer: &Answer) -> bool {
    let both = |choice: &ChoiceContent| !choice.reasoning.is_empty() && !choice.text.is_empty();
    answer.values().all(both)
}

fn is_cut(choice: &ChoiceContent) -> bool {
    choice.finish.as_deref() == Some("length")
}
