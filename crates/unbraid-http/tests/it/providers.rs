//! The interfaces of other providers, seen from the server.

mod answers;
mod choices;
mod environment;
mod errors;
mod requests;
mod secrets;
mod turns;

use bytes::Bytes;
use unbraid_http::{Client, ClientBuilder, Provider, Request};
use unbraid_testkit::fixture::Fixture;

use crate::server::{Reply, Server, full};

/// Every provider but OpenAI.
pub(crate) const OTHERS: [Provider; 5] = [
    Provider::Responses,
    Provider::Anthropic,
    Provider::Gemini,
    Provider::Ollama,
    Provider::Cohere,
];

/// A client for a server with the interface of this provider.
fn builder(provider: Provider, server: &Server) -> ClientBuilder {
    Client::builder_for(provider)
        .base_url(format!("http://{}", server.address()))
        .proxy_from_env(false)
}

pub(crate) fn client(provider: Provider, server: &Server) -> Client {
    builder(provider, server).build().unwrap()
}

/// A question in the form of chat completions.
fn question() -> Request {
    Request::chat("m").user("Hello?")
}

/// A short answer, in the dialect and with the content type of the provider.
fn answer(provider: Provider, text: &str) -> Reply {
    let events = |values: &[serde_json::Value]| {
        let events = values.iter().map(|value| format!("data: {value}\n\n"));
        full(200, "text/event-stream", events.collect::<String>())
    };
    use serde_json::json;
    match provider {
        Provider::Responses => events(&[
            json!({ "type": "response.created", "response": { "id": "r", "model": "m" } }),
            json!({ "type": "response.output_text.delta", "output_index": 0, "delta": text }),
            json!({ "type": "response.completed", "response": { "status": "completed", "output": [] } }),
        ]),
        Provider::Anthropic => events(&[
            json!({ "type": "message_start", "message": { "id": "r", "model": "m", "role": "assistant" } }),
            json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": text } }),
            json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" } }),
            json!({ "type": "message_stop" }),
        ]),
        Provider::Gemini => events(&[json!({ "candidates": [
            { "content": { "role": "model", "parts": [{ "text": text }] }, "finishReason": "STOP" },
        ] })]),
        Provider::Ollama => {
            let line = json!({ "model": "m", "message": { "role": "assistant", "content": text }, "done": true, "done_reason": "stop" });
            full(200, "application/x-ndjson", format!("{line}\n"))
        }
        Provider::Cohere => events(&[
            json!({ "type": "message-start", "id": "r", "delta": { "message": { "role": "assistant" } } }),
            json!({ "type": "content-delta", "index": 0, "delta": { "message": { "content": { "text": text } } } }),
            json!({ "type": "message-end", "delta": { "finish_reason": "COMPLETE" } }),
        ]),
        other => panic!("{other} has a helper of its own"),
    }
}

/// A recorded answer, with the content type of its framing.
fn recorded(name: &str) -> Reply {
    let fixture = Fixture::named(name);
    let extension = fixture.path.extension().unwrap().to_str().unwrap();
    let kind = match extension {
        "sse" => "text/event-stream; charset=utf-8",
        "ndjson" => "application/x-ndjson",
        "json" => "application/json",
        "bin" => "application/vnd.amazon.eventstream",
        other => panic!("{other}"),
    };
    full(200, kind, Bytes::from(fixture.bytes))
}
