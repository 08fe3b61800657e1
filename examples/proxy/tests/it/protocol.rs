//! The proxy without a browser.

use std::{collections::BTreeMap, time::Duration};

use axum::{Router, http::StatusCode, routing::post};
use reqwest::{Client, Response};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::support::{HAIKUS, PATIENCE, Running, recorded, silent, start, texts};

const LONG: Duration = Duration::from_secs(60);
/// Long enough for a busy machine to connect in time.
const SHORT: Duration = Duration::from_secs(2);

fn client() -> Client {
    // reqwest is built without a provider of its own. Another test may have installed the same one.
    let _installed = rustls::crypto::ring::default_provider().install_default();
    Client::builder().no_proxy().build().unwrap()
}

/// One event as an `EventSource` gets it.
#[derive(Debug, Clone, PartialEq)]
struct Received {
    id: Option<u64>,
    kind: String,
    data: Value,
}

impl Running {
    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    async fn ask(&self, choices: u32) -> Response {
        let question = json!({ "question": "Rain?", "choices": choices });
        let request = client().post(self.url("/completions")).json(&question);
        request.send().await.unwrap()
    }

    /// Asks, and returns the id of the request.
    async fn asked(&self, choices: u32) -> u64 {
        let answer: Value = self.ask(choices).await.json().await.unwrap();
        assert_eq!(answer["choices"], choices);
        answer["id"].as_u64().unwrap()
    }

    async fn watch(&self, id: u64, index: u32, last: Option<u64>) -> Response {
        let mut request = client().get(self.url(&format!("/completions/{id}/choices/{index}")));
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        request.send().await.unwrap()
    }

    /// Reads the stream of a choice until its `end`, or until it has this many events.
    async fn events(&self, id: u64, index: u32, last: Option<u64>, max: usize) -> Vec<Received> {
        let mut response = self.watch(id, index, last).await;
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        let (mut text, mut events) = (String::new(), Vec::new());
        while let Some(bytes) = timeout(PATIENCE, response.chunk()).await.unwrap().unwrap() {
            text.push_str(std::str::from_utf8(&bytes).unwrap());
            while let Some((block, rest)) = text.split_once("\n\n") {
                events.extend(parse(block));
                text = rest.to_owned();
            }
            if events.len() >= max || events.last().is_some_and(|event| event.kind == "end") {
                break;
            }
        }
        events.truncate(max);
        events
    }
}

fn parse(block: &str) -> Option<Received> {
    let field = |name: &str| {
        block
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    };
    Some(Received {
        id: field("id").map(|id| id.parse().unwrap()),
        kind: field("event")?.to_owned(),
        data: serde_json::from_str(field("data")?).unwrap(),
    })
}

fn text(events: &[Received]) -> String {
    let deltas = events.iter().filter(|event| event.kind == "content.delta");
    deltas
        .map(|event| event.data["delta"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn each_choice_has_a_stream_of_its_own() {
    let running = start(recorded(HAIKUS, 1), LONG).await;
    let id = running.asked(4).await;
    let mut read = BTreeMap::new();
    for index in [3, 0, 2, 1] {
        let events = running.events(id, index, None, usize::MAX).await;
        let numbers: Vec<_> = events.iter().map(|event| event.id).collect();
        let expected: Vec<_> = (0..events.len() as u64).map(Some).collect();
        assert_eq!(numbers, expected, "choice {index} is numbered without gaps");
        assert_eq!(events.last().unwrap().data["end"], "finished");
        read.insert(index, text(&events));
    }
    assert_eq!(read, texts(HAIKUS));
}

#[tokio::test]
async fn a_reconnect_continues_behind_the_last_event() {
    let running = start(recorded(HAIKUS, 2), LONG).await;
    let id = running.asked(4).await;
    let mut events = running.events(id, 1, None, 3).await;
    assert_eq!(events.len(), 3);
    let rest = running.events(id, 1, Some(2), usize::MAX).await;
    assert_eq!(rest[0].id, Some(3));
    events.extend(rest);
    assert_eq!(text(&events), texts(HAIKUS)[&1]);
    // A page that is opened later reads from the start.
    assert_eq!(running.events(id, 1, None, usize::MAX).await, events);
}

#[tokio::test]
async fn a_choice_without_a_connection_is_freed_and_the_others_continue() {
    let (provider, closed) = silent();
    let running = start(provider, SHORT).await;
    let id = running.asked(2).await;
    let kept = running.watch(id, 0, None).await;
    let dropped = running.watch(id, 1, None).await;
    drop(dropped);
    let gone = async {
        let mut ticks = tokio::time::interval(2 * SHORT);
        loop {
            ticks.tick().await;
            if running.watch(id, 1, None).await.status() == StatusCode::GONE {
                return;
            }
        }
    };
    timeout(PATIENCE, gone).await.expect("the choice is freed");
    assert_eq!(running.proxy.open_requests(), 1);
    assert!(
        !*closed.borrow(),
        "the other choice still needs the connection to the provider"
    );
    drop(kept);
}

#[tokio::test]
async fn the_provider_is_disconnected_when_all_choices_are_freed() {
    let (provider, mut closed) = silent();
    let running = start(provider, SHORT).await;
    let id = running.asked(2).await;
    let watched = [
        running.watch(id, 0, None).await,
        running.watch(id, 1, None).await,
    ];
    drop(watched);
    running.all_freed().await;
    let closed = closed.wait_for(|closed| *closed);
    timeout(PATIENCE, closed)
        .await
        .expect("the connection is closed")
        .unwrap();
    assert_eq!(running.watch(id, 0, None).await.status(), StatusCode::GONE);
}

#[tokio::test]
async fn a_request_that_no_browser_reads_is_freed() {
    let (provider, mut closed) = silent();
    let running = start(provider, SHORT).await;
    running.asked(2).await;
    running.all_freed().await;
    let closed = closed.wait_for(|closed| *closed);
    timeout(PATIENCE, closed)
        .await
        .expect("the connection is closed")
        .unwrap();
}

#[tokio::test]
async fn a_finished_answer_is_freed_after_it_was_read() {
    let running = start(recorded(HAIKUS, 0), SHORT).await;
    let id = running.asked(4).await;
    let streams = [0, 1, 2, 3].map(|index| running.events(id, index, None, usize::MAX));
    let events = futures::future::join_all(streams).await;
    assert!(events.iter().all(|events| !events.is_empty()));
    running.all_freed().await;
}

#[tokio::test]
async fn a_choice_that_the_provider_never_sends_ends() {
    let one = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let running = start(recorded(one, 0), LONG).await;
    let id = running.asked(2).await;
    let events = running.events(id, 1, None, usize::MAX).await;
    let end = json!({ "end": "missing", "message": "the answer has no such choice" });
    assert_eq!(
        events,
        [Received {
            id: None,
            kind: "end".to_owned(),
            data: end
        }]
    );
}

#[tokio::test]
async fn requests_beyond_the_limit_are_refused_before_they_are_sent() {
    const LIMIT: usize = 64;
    let (provider, _closed) = silent();
    let running = start(provider, LONG).await;
    for _ in 0..LIMIT {
        assert_eq!(running.ask(1).await.status(), StatusCode::OK);
    }
    assert_eq!(
        running.ask(1).await.status(),
        StatusCode::SERVICE_UNAVAILABLE
    );
    assert_eq!(running.proxy.open_requests(), LIMIT);
}

#[tokio::test]
async fn an_interrupted_choice_ends_with_its_error() {
    let cut = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"}}]}\n\n";
    let running = start(recorded(cut, 0), LONG).await;
    let id = running.asked(1).await;
    let events = running.events(id, 0, None, usize::MAX).await;
    assert_eq!(text(&events), "Hi");
    assert_eq!(events.last().unwrap().data["end"], "interrupted");
}

#[tokio::test]
async fn line_ends_in_a_delta_do_not_end_the_event() {
    let hostile = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\\n\\nevent: end\\ndata: {}\\n\\r\\n\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let running = start(recorded(hostile, 0), LONG).await;
    let id = running.asked(1).await;
    let events = running.events(id, 0, None, usize::MAX).await;
    assert_eq!(text(&events), "a\n\nevent: end\ndata: {}\n\r\n");
}

#[tokio::test]
async fn the_message_of_a_provider_that_refuses_reaches_the_page() {
    let refusing = Router::new().route(
        "/demo/chat/completions",
        post(async || {
            (
                StatusCode::UNAUTHORIZED,
                r#"{"error":{"message":"You have no key."}}"#,
            )
        }),
    );
    let running = start(refusing, LONG).await;
    let response = running.ask(2).await;
    assert_eq!(response.status(), StatusCode::BAD_GATEWAY);
    let answer: Value = response.json().await.unwrap();
    assert!(
        answer["error"]
            .as_str()
            .unwrap()
            .contains("You have no key."),
        "{answer}"
    );
    assert_eq!(running.proxy.open_requests(), 0);
}

#[tokio::test]
async fn other_requests_are_refused() {
    let running = start(recorded(HAIKUS, 0), LONG).await;
    for choices in [0, 6, u32::MAX] {
        assert_eq!(running.ask(choices).await.status(), StatusCode::BAD_REQUEST);
    }
    assert_eq!(running.watch(77, 0, None).await.status(), StatusCode::GONE);
    let id = running.asked(2).await;
    assert_eq!(running.watch(id, 2, None).await.status(), StatusCode::GONE);

    let post = || client().post(running.url("/completions"));
    let question = r#"{"question":"Rain?","choices":2}"#;
    // A form of another site cannot send JSON without asking first, which is not granted.
    let form = post().header("content-type", "text/plain").body(question);
    assert_eq!(
        form.send().await.unwrap().status(),
        StatusCode::UNSUPPORTED_MEDIA_TYPE
    );
    let long = json!({ "question": "x".repeat(70_000), "choices": 2 });
    assert_eq!(
        post().json(&long).send().await.unwrap().status(),
        StatusCode::PAYLOAD_TOO_LARGE
    );
    let rebound = client()
        .get(running.url("/"))
        .header("host", "attacker.example");
    assert_eq!(
        rebound.send().await.unwrap().status(),
        StatusCode::FORBIDDEN
    );
    let local = client()
        .get(running.url("/"))
        .header("host", "localhost:8080");
    assert_eq!(local.send().await.unwrap().status(), StatusCode::OK);
}

#[tokio::test]
async fn the_page_loads_nothing_from_elsewhere() {
    let running = start(recorded(HAIKUS, 0), LONG).await;
    for path in ["/", "/page.js", "/page.css"] {
        let response = client().get(running.url(path)).send().await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        let policy = response.headers()["content-security-policy"]
            .to_str()
            .unwrap()
            .to_owned();
        assert!(
            policy.starts_with("default-src 'none'; script-src 'self';"),
            "{policy}"
        );
        let text = response.text().await.unwrap();
        for foreign in [
            "http:",
            "https:",
            "src=\"//",
            "href=\"//",
            "url(",
            "@import",
            "innerHTML",
            "insertAdjacentHTML",
        ] {
            assert!(!text.contains(foreign), "{path} has {foreign}");
        }
    }
}
