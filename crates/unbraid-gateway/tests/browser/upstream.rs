//! A provider whose models are scripts.

use std::{convert::Infallible, fmt::Write, net::SocketAddr, time::Duration};

use axum::{
    Json, Router,
    body::{Body, Bytes},
    http::{StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use futures::{StreamExt, stream};
use serde_json::{Value, json};
use tokio::{net::TcpListener, time::sleep};

/// A model whose name is markup.
pub(crate) const MARKUP_MODEL: &str = "<b onclick=alert(0)>model</b>";

/// The arguments of each call of the model `calls`.
pub(crate) const ARGUMENTS: &str = r#"{"city":"Oslo","days":[1,2],"near":{"name":"T\u00f8yen"}}"#;

/// The texts of a hostile answer.
pub(crate) const MARKUP: [&str; 4] = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(2)></div></section>",
    "<b onclick=alert(3)>call</b>",
    r#"{"<i>a</i>":"</pre><script>alert(4)</script>"}"#,
];

/// Starts the provider, and returns its base URL.
pub(crate) async fn start() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address: SocketAddr = listener.local_addr().unwrap();
    let models = || async {
        let models =
            ["words", "calls", MARKUP_MODEL].map(|id| json!({ "id": id, "object": "model" }));
        Json(json!({ "object": "list", "data": models }))
    };
    let app = Router::new()
        .route("/v1/models", get(models))
        .route("/v1/chat/completions", post(complete));
    tokio::spawn(async move { axum::serve(listener, app).await });
    format!("http://{address}/v1")
}

/// The text of a choice of the model `words`: some paragraphs, and in each choice others.
pub(crate) fn words(choice: u64) -> String {
    (0..48).fold(String::new(), |mut text, word| {
        let end = if word % 12 == 11 { ".\n\n" } else { " " };
        write!(text, "word{choice}x{word}{end}").unwrap();
        text
    })
}

/// The text of a choice of the model `large`: 50,000 characters, some of them in one long line. Every other choice is a single
/// word.
pub(crate) fn large(choice: u64) -> String {
    let line =
        format!("This is a sentence of choice {choice}, and it is followed by many more of them. ");
    let mut text: String = line.repeat(150);
    while text.len() < 50_000 {
        text.push_str(&line);
        text.push('\n');
    }
    text.truncate(50_000);
    if choice % 2 == 1 {
        return text.replace([' ', '\n'], "-");
    }
    text
}

async fn complete(Json(request): Json<Value>) -> Response {
    let n = request["n"].as_u64().unwrap_or(1);
    let model = request["model"].as_str().unwrap_or_default().to_owned();
    if model == "refused" {
        let error = json!({ "message": "too many requests of <b>you</b>", "type": "rate", "param": null, "code": "rate_limit" });
        return (
            StatusCode::TOO_MANY_REQUESTS,
            Json(json!({ "error": error })),
        )
            .into_response();
    }
    let pause = Duration::from_millis(if model == "large" { 4 } else { 25 });
    let events = stream::iter(events(&model, n)).then(move |data| async move {
        sleep(pause).await;
        Ok::<_, Infallible>(Bytes::from(format!("data: {data}\n\n")))
    });
    (
        [(CONTENT_TYPE, "text/event-stream")],
        Body::from_stream(events),
    )
        .into_response()
}

/// The data of all events.
fn events(model: &str, n: u64) -> Vec<String> {
    let chunk = |choices: Value| {
        json!({ "id": "c", "object": "chat.completion.chunk", "created": 1_790_000_000, "model": model, "choices": choices }).to_string()
    };
    let deltas: Vec<Vec<Value>> = (0..n).map(|choice| deltas(model, choice)).collect();
    let longest = deltas.iter().map(Vec::len).max().unwrap_or_default();
    let mut events = Vec::new();
    for step in 0..longest {
        for (choice, deltas) in (0..n).zip(&deltas) {
            let Some(delta) = deltas.get(step) else {
                continue;
            };
            events.push(chunk(
                json!([{ "index": choice, "delta": delta, "finish_reason": null }]),
            ));
            if step + 1 == deltas.len() && model != "cut" {
                events.push(chunk(json!([{ "index": choice, "delta": {}, "finish_reason": reason(model, choice) }])));
            }
        }
    }
    match model {
        "cut" => {}
        "error" => events
            .push(json!({ "error": { "message": "engine <i>died</i>", "code": 500 } }).to_string()),
        _ => events.push("[DONE]".to_owned()),
    }
    events
}

fn reason(model: &str, choice: u64) -> Option<&'static str> {
    match model {
        "calls" | MARKUP_MODEL => Some("tool_calls"),
        "error" if choice > 0 => None,
        _ if choice == 2 => Some("length"),
        _ => Some("stop"),
    }
}

fn deltas(model: &str, choice: u64) -> Vec<Value> {
    let call = |name: &str| json!({ "tool_calls": [{ "index": 0, "id": format!("call_{choice}"), "type": "function", "function": { "name": name, "arguments": "" } }] });
    let arguments =
        |text: &str| json!({ "tool_calls": [{ "index": 0, "function": { "arguments": text } }] });
    match model {
        "calls" => {
            let fragments = pieces(ARGUMENTS, 3);
            std::iter::once(call("get_weather"))
                .chain(fragments.iter().map(|text| arguments(text)))
                .collect()
        }
        MARKUP_MODEL => vec![
            json!({ "reasoning_content": MARKUP[0] }),
            json!({ "content": MARKUP[1] }),
            call(MARKUP[2]),
            arguments(MARKUP[3]),
        ],
        // Several deltas arrive at once, as they do from a fast provider.
        "large" => pieces(&large(choice), 250)
            .into_iter()
            .map(|text| json!({ "content": text }))
            .collect(),
        "error" | "cut" => pieces(&words(choice), 20)
            .into_iter()
            .take(8)
            .map(|text| json!({ "content": text }))
            .collect(),
        // The second choice is slower to begin, so that the choices grow at different times.
        _ => {
            let reasoning = json!({ "reasoning_content": "It is easy. " });
            let role = json!({ "role": "assistant", "content": "" });
            let words = words(choice);
            let content = words
                .split_inclusive(' ')
                .map(|text| json!({ "content": text }));
            [role, reasoning].into_iter().chain(content).collect()
        }
    }
}

/// Cuts a text of ASCII.
fn pieces(text: &str, length: usize) -> Vec<String> {
    let bytes = text.as_bytes().chunks(length);
    bytes
        .map(|piece| String::from_utf8_lossy(piece).into_owned())
        .collect()
}
