//! One request for each choice, seen from the server and from the consumer.

mod auto;
mod cancel;
mod errors;
mod timeouts;

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use serde_json::Value;
use tokio::time::timeout;
use unbraid::{Completions, UsageSource};
use unbraid_http::{ChoiceStrategy, Request};
use unbraid_testkit::script::{DONE, Probe, Script, Step, bytes, content, finish};

use crate::server::{self, Reply, Server, full};

/// Far longer than any test takes, so that a test that hangs fails.
const DEADLINE: Duration = Duration::from_secs(30);

pub(crate) fn question() -> Request {
    Request::chat("m").user("Hello?")
}

/// A stream of one choice, with its usage.
pub(crate) fn one(text: &str) -> String {
    let usage = r#"{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}"#;
    [
        content(0, text),
        finish(0, "stop"),
        format!("data: {{\"choices\":[],\"usage\":{usage}}}\n\n"),
        DONE.to_owned(),
    ]
    .concat()
}

pub(crate) fn sse(body: String) -> Reply {
    full(200, "text/event-stream", body)
}

/// Returns `index end text` of every choice, ordered by index.
pub(crate) async fn ends(completions: &Completions) -> Vec<String> {
    let mut seen = Vec::new();
    let mut choices = completions.choices();
    while let Some(choice) = timeout(DEADLINE, choices.next())
        .await
        .expect("no result before the deadline")
    {
        let Ok(choice) = choice else { break };
        let outcome = timeout(DEADLINE, choice.outcome())
            .await
            .expect("no result before the deadline");
        seen.push(format!(
            "{} {} {}",
            outcome.choice,
            outcome.end.as_str(),
            outcome.message.content
        ));
    }
    seen.sort();
    seen
}

fn bodies(server: &Server) -> Vec<Value> {
    let parse = |request: &hyper::Request<Bytes>| serde_json::from_slice(request.body()).unwrap();
    server.requests().iter().map(parse).collect()
}

#[tokio::test]
async fn n_requests_for_one_choice_are_one_completion_of_n_choices() {
    let server = Server::start(|ordinal| sse(one(&format!("answer {ordinal}")))).await;
    let request = question().n(4).field("seed", 7);
    let completions = server.client().fan_out(&request, 4);
    let ends = ends(&completions).await;
    assert_eq!(ends.len(), 4);
    for (index, end) in ends.iter().enumerate() {
        assert!(
            end.starts_with(&format!("{index} finished answer ")),
            "{end}"
        );
    }
    assert!(completions.closed().await.is_ok());
    let usage = completions.usage().await;
    assert_eq!(
        usage.prompt_tokens,
        Some(20),
        "the prompt is paid four times"
    );
    assert_eq!(usage.completion_tokens, Some(8));
    assert_eq!(usage.per_choice.len(), 4);
    assert_eq!(usage.source, UsageSource::Reported);
    let mut seeds = Vec::new();
    for body in bodies(&server) {
        assert!(body.get("n").is_none());
        assert_eq!(body["stream"], true);
        seeds.push(body["seed"].as_i64().unwrap());
    }
    seeds.sort_unstable();
    assert_eq!(seeds, [7, 8, 9, 10], "equal seeds give equal answers");
}

#[tokio::test]
async fn each_request_of_a_fan_out_has_a_body_of_known_length() {
    for http2 in [false, true] {
        let server = Server::start(|_| sse(one("a"))).await;
        let client = server.builder().http2_prior_knowledge(http2);
        let request = question().user("x".repeat(200_000)).seed(1);
        let completions = client.build().unwrap().fan_out(&request, 2);
        assert_eq!(ends(&completions).await.len(), 2);
        for sent in server.requests() {
            let length = sent.headers()["content-length"].to_str().unwrap();
            assert_eq!(length.parse(), Ok(sent.body().len()));
            assert!(sent.body().len() > 200_000);
        }
    }
}

#[tokio::test]
async fn each_request_of_a_fan_out_is_retried_completely() {
    let server = Server::start(|ordinal| match ordinal {
        0 | 2 => {
            let mut busy = full(503, "text/plain", "busy");
            busy.headers_mut()
                .insert("retry-after-ms", "0".parse().unwrap());
            busy
        }
        _ => sse(one("a")),
    })
    .await;
    let client = server.builder().max_requests(1).build().unwrap();
    let completions = client.fan_out(&question().seed(1), 2);
    assert_eq!(ends(&completions).await, ["0 finished a", "1 finished a"]);
    let seeds: Vec<_> = bodies(&server)
        .iter()
        .map(|body| body["seed"].as_i64().unwrap())
        .collect();
    assert_eq!(seeds, [1, 1, 2, 2]);
}

#[tokio::test]
async fn the_number_of_parallel_requests_is_bounded() {
    let probes = Arc::new(Mutex::new(Vec::<Probe>::new()));
    let peak = Arc::new(AtomicUsize::new(0));
    let (started, counted) = (Arc::clone(&probes), Arc::clone(&peak));
    let server = Server::start(move |_| {
        let script = Script::new([Step::Pause(Duration::from_millis(20)), bytes(one("a"))]);
        let mut started = started.lock().unwrap();
        started.push(script.probe());
        let running = started.iter().filter(|probe| !probe.closed()).count();
        counted.fetch_max(running, Ordering::SeqCst);
        server::stream(script)
    })
    .await;
    let client = server.builder().max_requests(2).build().unwrap();
    let completions = client.fan_out(&question(), 6);
    assert_eq!(ends(&completions).await.len(), 6);
    assert_eq!(server.requests().len(), 6);
    assert_eq!(peak.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn send_uses_the_strategy_of_the_request() {
    let server = Server::start(|_| sse(one("a"))).await;
    let request = question().n(2).choice_strategy(ChoiceStrategy::FanOut);
    let completions = server.client().send(&request).await.unwrap();
    assert_eq!(ends(&completions).await, ["0 finished a", "1 finished a"]);
    assert!(bodies(&server).iter().all(|body| body.get("n").is_none()));
}

#[tokio::test]
async fn each_prompt_of_a_list_has_its_choices() {
    let server = Server::start(|_| sse(one("a"))).await;
    let request = Request::text("m", serde_json::json!(["first", "second"])).n(2);
    let completions = server
        .client()
        .send(&request.choice_strategy(ChoiceStrategy::FanOut))
        .await
        .unwrap();
    assert_eq!(ends(&completions).await.len(), 4);
    let mut prompts: Vec<Value> = bodies(&server)
        .iter()
        .map(|body| body["prompt"].clone())
        .collect();
    prompts.sort_by_key(Value::to_string);
    assert_eq!(prompts, ["first", "first", "second", "second"]);
}
