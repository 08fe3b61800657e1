//! One engine in three dialects: llama.cpp's server also has Anthropic's Messages API and OpenAI's Responses API.

use std::io::{self, Write};

use serde_json::{Value, json};
use unbraid::{ChoiceOutcome, Completions, Dialect, FinishClass};
use unbraid_core::{Config, Demux, Transcript};
use unbraid_http::{Client, Provider, Request};

use crate::{engine, http, run};

/// The interfaces, each with its path below the version, and its dialect.
const INTERFACES: [(Provider, &str, Dialect); 3] = [
    (Provider::OpenAi, "/chat/completions", Dialect::Chat),
    (Provider::Anthropic, "/messages", Dialect::Anthropic),
    (Provider::Responses, "/responses", Dialect::Responses),
];

/// The engine, if it has all three interfaces.
fn base_url() -> Option<&'static str> {
    let base_url = engine::shared()?;
    for (_, path, _) in INTERFACES {
        let status = run(http::post(base_url, path, &json!({}))).status;
        if status == 404 {
            writeln!(
                io::stderr(),
                "\nskipped the tests of three dialects: this engine has no {path}"
            )
            .unwrap();
            return None;
        }
    }
    Some(base_url)
}

/// The same question in the form of an interface. Not every interface takes a seed, so the answers depend on the question only.
fn question(provider: Provider, text: &str, options: &Options) -> Value {
    let mut body = json!({
        "model": "tiny", "temperature": 0,
        "chat_template_kwargs": { "enable_thinking": options.reasons },
    });
    let message = json!([{ "role": "user", "content": text }]);
    let schema = json!({
        "type": "object",
        "properties": { "harbour": { "type": "string", "maxLength": 12 } },
        "required": ["harbour"], "additionalProperties": false,
    });
    let fields = match provider {
        Provider::Anthropic => json!({
            "messages": message,
            "max_tokens": options.max_tokens,
            "tools": [{ "name": "get_wind", "input_schema": schema }],
            "tool_choice": { "type": "any" },
        }),
        Provider::Responses => json!({
            "input": text,
            "max_output_tokens": options.max_tokens,
            "tools": [{ "type": "function", "name": "get_wind", "parameters": schema, "strict": false }],
            "tool_choice": "required",
        }),
        _ => json!({
            "messages": message,
            "max_tokens": options.max_tokens,
            "tools": [{ "type": "function", "function": { "name": "get_wind", "parameters": schema } }],
            "tool_choice": "required",
        }),
    };
    for (name, value) in fields.as_object().unwrap() {
        if options.calls || !name.starts_with("tool") {
            body[name] = value.clone();
        }
    }
    body
}

struct Options {
    max_tokens: u32,
    reasons: bool,
    calls: bool,
}

fn client(provider: Provider, base_url: &str) -> Client {
    let client = Client::builder_for(provider).base_url(base_url);
    client.proxy_from_env(false).build().unwrap()
}

/// What the answers have in common: the reasons are each dialect's own, so only their classes are compared.
fn outline(outcome: &ChoiceOutcome) -> Value {
    let message = &outcome.message;
    let calls = message.tool_calls.iter().map(|call| {
        let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
        json!([&*call.name, arguments])
    });
    let class = match outcome.finish_reason.as_ref().map(|reason| reason.class()) {
        // A call ends a response as complete.
        Some(FinishClass::Stop | FinishClass::ToolCalls) => "complete",
        Some(FinishClass::Length) => "cut",
        _ => "other",
    };
    let calls: Vec<Value> = calls.collect();
    json!({ "text": message.content, "reasoning": message.reasoning, "calls": calls, "class": class })
}

async fn streamed(provider: Provider, base_url: &str, body: &Value) -> (Value, Option<Dialect>) {
    let request = match provider {
        Provider::OpenAi => Request::from_value(body.clone()),
        _ => Request::native(body.clone()),
    };
    let completions = client(provider, base_url).send(&request.unwrap()).await;
    let completions = completions.unwrap();
    let choice = completions.first().await.unwrap();
    let outcome = choice.outcome().await;
    completions.closed().await.unwrap();
    assert_eq!(outcome.end.as_str(), "finished");
    (outline(&outcome), completions.metadata().dialect())
}

fn demuxed(bytes: &[u8]) -> Value {
    let mut demux = Demux::new(Config::default());
    demux.feed(bytes);
    demux.finish();
    let outcome = demux.choices().find_map(Transcript::outcome);
    outline(&outcome.unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(bytes))))
}

const QUESTIONS: [&str; 4] = [
    "How is the wind?",
    "What of the tide",
    "Of the harbour:",
    "Ring the bell",
];

#[test]
fn a_question_has_one_answer_in_three_dialects() {
    let Some(base_url) = base_url() else { return };
    let short = Options {
        max_tokens: 160,
        reasons: false,
        calls: false,
    };
    let options = [
        Options {
            reasons: true,
            ..short
        },
        Options {
            calls: true,
            ..short
        },
        Options {
            max_tokens: 2,
            ..short
        },
        short,
    ];
    let mut distinct = std::collections::BTreeSet::new();
    for (text, options) in QUESTIONS.iter().zip(options.iter().cycle()) {
        let mut answers = Vec::new();
        for (provider, path, dialect) in INTERFACES {
            let body = question(provider, text, options);
            let (answer, read_as) = run(streamed(provider, base_url, &body));
            assert_eq!(read_as, Some(dialect));
            let whole = run(http::post(base_url, path, &body));
            assert_eq!(demuxed(&whole.bytes), answer, "{dialect}: {text}");
            let mut body = body;
            body["stream"] = true.into();
            let stream = run(http::post(base_url, path, &body));
            assert_eq!(demuxed(&stream.bytes), answer, "{dialect}: {text}");
            answers.push(answer);
        }
        assert_eq!(answers[1], answers[0], "anthropic: {text}");
        // This engine reports a response that was cut as completed.
        assert_eq!(answers[2]["class"], "complete", "{}", answers[2]);
        answers[2]["class"] = answers[0]["class"].clone();
        assert_eq!(answers[2], answers[0], "responses: {text}");
        let has = |name: &str| answers[0][name] != json!("") && answers[0][name] != json!([]);
        assert_eq!(has("calls"), options.calls, "{}", answers[0]);
        assert!(has("reasoning") || !options.reasons, "{}", answers[0]);
        let is_cut = answers[0]["class"] == "cut";
        assert_eq!(is_cut, options.max_tokens == 2, "{}", answers[0]);
        distinct.insert(answers[0].to_string());
    }
    assert!(distinct.len() >= 4, "{distinct:?}");
}

#[test]
fn three_dialects_are_three_choices_of_one_completion() {
    let Some(base_url) = base_url() else { return };
    run(async {
        let request = Request::chat("tiny").user("How is the wind?");
        let request = request.temperature(0.0).max_tokens(200);
        let source = |(provider, ..): (Provider, &str, Dialect)| {
            client(provider, base_url).source(request.clone())
        };
        let completions = Completions::merge(INTERFACES.map(source));
        completions.closed().await.unwrap();
        let mut outlines = Vec::new();
        for (index, (.., dialect)) in (0..).zip(INTERFACES) {
            let choice = completions.choice(index).await.unwrap();
            outlines.push(outline(&choice.outcome().await));
            let metadata = completions.choice_metadata(index).unwrap();
            assert_eq!(metadata.dialect(), Some(dialect));
            assert_eq!(metadata.model.as_deref(), Some("tiny"));
            let usage = completions.choice_usage(index).await.unwrap();
            assert!(usage.completion_tokens.is_some_and(|tokens| tokens > 0));
        }
        assert_eq!(outlines[1], outlines[0]);
        assert_eq!(outlines[2], outlines[0]);
        let usage = completions.usage().await;
        assert_eq!(
            usage.raw["completion_tokens"].as_u64(),
            usage.completion_tokens
        );
    });
}
