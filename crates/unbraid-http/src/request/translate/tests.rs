//! What a chat completion becomes for each provider.

mod anthropic;
mod cohere;
mod gemini;
mod ollama;
mod refusals;
mod responses;

use serde_json::{Value, json};

use crate::{Provider, Request};

/// The body of a request, whatever the order of its fields.
#[track_caller]
fn check(provider: Provider, request: Value, expected: Value) {
    let request = Request::from_value(request).unwrap();
    let body = request.body_for(provider).unwrap();
    assert_eq!(body, expected, "{body:#}");
}

/// The messages, or what a provider has in their place.
#[track_caller]
fn check_messages(provider: Provider, messages: Value, expected: Value) {
    let request = Request::from_value(json!({ "model": "m", "messages": messages })).unwrap();
    let body = request.body_for(provider).unwrap();
    let name = match provider {
        Provider::Gemini => "contents",
        Provider::Responses => "input",
        _ => "messages",
    };
    assert_eq!(body[name], expected, "{body:#}");
}

/// A request with what all providers have in common.
fn common() -> Value {
    json!({
        "model": "m",
        "messages": [
            { "role": "system", "content": "Be brief." },
            { "role": "user", "content": [
                { "type": "text", "text": "Where is this?" },
                { "type": "image_url", "image_url": { "url": "data:image/png;base64,iVBORw0=" } },
            ] },
            { "role": "assistant", "content": "Let me ask.", "tool_calls": [
                { "id": "c1", "type": "function", "function": { "name": "locate", "arguments": "{\"zoom\":2}" } },
                { "id": "c2", "type": "function", "function": { "name": "now", "arguments": "" } },
            ] },
            { "role": "tool", "tool_call_id": "c2", "content": "12:00" },
            { "role": "tool", "tool_call_id": "c1", "content": "{\"city\":\"Oslo\"}" },
            { "role": "user", "content": "Thanks. And this?" },
        ],
        "tools": [
            { "type": "function", "function": { "name": "locate", "description": "Finds a place.", "parameters": schema() } },
            { "type": "function", "function": { "name": "now" } },
        ],
        "tool_choice": "auto",
        "max_tokens": 64,
        "temperature": 0.5,
        "response_format": {
            "type": "json_schema",
            "json_schema": { "name": "place", "strict": true, "schema": schema() },
        },
        "n": 1,
        "stream": false,
        "stream_options": { "include_usage": true },
        "user": null,
    })
}

fn schema() -> Value {
    json!({ "type": "object", "properties": { "zoom": { "type": "integer" } } })
}

/// The message of an answer with one call, and with these other fields.
fn answer(fields: Value) -> Value {
    let mut message = json!({ "role": "assistant", "tool_calls": [
        { "id": "c1", "type": "function", "function": { "name": "now", "arguments": "{}" } },
    ] });
    for (name, value) in fields.as_object().unwrap() {
        message[name] = value.clone();
    }
    message
}

#[test]
fn the_request_of_openai_stays_as_it_is() {
    let request = Request::chat("m").user("Hi").field("odd", 1).n(3);
    assert_eq!(request.body_for(Provider::OpenAi).unwrap(), request.body());
}

#[test]
fn defaults_of_chat_completions_ask_for_nothing() {
    let defaults = json!({
        "model": "m",
        "messages": [],
        "frequency_penalty": 0,
        "presence_penalty": 0.0,
        "logprobs": false,
        "top_logprobs": 0,
        "logit_bias": {},
        "stop": [],
        "modalities": ["text"],
        "parallel_tool_calls": true,
        "store": false,
        "n": 1,
        "seed": null,
        "tools": [],
        "response_format": { "type": "text" },
    });
    let minimal = Request::from_value(json!({ "model": "m", "messages": [] })).unwrap();
    for provider in Provider::ALL
        .into_iter()
        .filter(|other| *other != Provider::OpenAi)
    {
        check(
            provider,
            defaults.clone(),
            minimal.body_for(provider).unwrap(),
        );
    }
}
