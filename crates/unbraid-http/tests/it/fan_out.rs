//! A request for each choice: what the server sees, and what the consumer does not.

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
use unbraid::{Completions, StreamError, UsageSource};
use unbraid_http::{Choices, HttpError, Request};
use unbraid_testkit::script::{DONE, Probe, Script, Step, bytes, content, finish};

use crate::server::{self, Answer, Server, full};

/// Far longer than anything here takes: what hangs fails.
const DEADLINE: Duration = Duration::from_secs(30);

fn question() -> Request {
    Request::chat("m").user("Hello?")
}

/// The answer of one choice, with its usage.
fn one(text: &str) -> String {
    let usage = r#"{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}"#;
    [
        content(0, text),
        finish(0, "stop"),
        format!("data: {{\"choices\":[],\"usage\":{usage}}}\n\n"),
        DONE.to_owned(),
    ]
    .concat()
}

fn sse(body: String) -> Answer {
    full(200, "text/event-stream", body)
}

/// `index end text` of every choice, by index.
async fn ends(completions: &Completions) -> Vec<String> {
    let mut seen = Vec::new();
    let mut choices = completions.choices();
    while let Some(choice) = timeout(DEADLINE, choices.next()).await.expect("it hangs") {
        let Ok(choice) = choice else { break };
        let ended = timeout(DEADLINE, choice.ended()).await.expect("it hangs");
        seen.push(format!(
            "{} {} {}",
            ended.index,
            ended.end.name(),
            ended.message.content
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
async fn n_requests_of_one_choice_are_one_completion_of_n() {
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
async fn one_refused_request_is_the_error_of_its_choice() {
    let server = Server::start(|ordinal| match ordinal {
        1 => full(
            401,
            "application/json",
            r#"{"error":{"message":"no such key"}}"#,
        ),
        _ => sse(one("fine")),
    })
    .await;
    let client = server.builder().max_requests(1).build().unwrap();
    let completions = client.fan_out(&question(), 3);
    let expected = ["0 finished fine", "1 transport ", "2 finished fine"];
    assert_eq!(ends(&completions).await, expected);
    assert!(completions.closed().await.is_ok());
    let refused = completions
        .choice(1)
        .await
        .unwrap()
        .finished()
        .await
        .unwrap_err();
    let Some(HttpError::Status(status)) = HttpError::cause_of(&refused) else {
        panic!("{refused:?}");
    };
    assert_eq!(
        (status.status(), status.message()),
        (401, Some("no such key"))
    );
    let usage = completions.usage().await;
    assert_eq!(
        usage.prompt_tokens,
        Some(10),
        "a refusal is no part of the bill"
    );
}

#[tokio::test]
async fn if_every_request_fails_the_completion_has() {
    let server = Server::start(|_| full(403, "text/plain", "go away")).await;
    let completions = server.client().fan_out(&question(), 2);
    assert_eq!(ends(&completions).await, ["0 transport ", "1 transport "]);
    let error = completions.closed().await.unwrap_err();
    assert!(matches!(error, StreamError::Transport(_)));
    assert_eq!(
        HttpError::cause_of(&error).map(HttpError::name),
        Some("status")
    );
}

/// A server whose answers begin and stall, each with its probe.
async fn stalling() -> (Server, Arc<Mutex<Vec<Probe>>>) {
    let probes = Arc::new(Mutex::new(Vec::new()));
    let shared = Arc::clone(&probes);
    let server = Server::start(move |ordinal| {
        let script = Script::new([bytes(content(0, &format!("{ordinal}"))), Step::Stall]);
        shared.lock().unwrap().push(script.probe());
        server::stream(script)
    })
    .await;
    (server, probes)
}

async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let wait = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(DEADLINE, wait)
        .await
        .unwrap_or_else(|_| panic!("never: {what}"));
}

#[tokio::test]
async fn a_cancelled_choice_closes_its_connection_and_no_other() {
    let (server, probes) = stalling().await;
    let completions = server.client().fan_out(&question(), 3);
    let choice = completions.choice(1).await.unwrap();
    let own: usize = choice
        .content()
        .next()
        .await
        .unwrap()
        .unwrap()
        .parse()
        .unwrap();
    until("three requests", || probes.lock().unwrap().len() == 3).await;
    choice.cancel();
    until("its connection is closed", || {
        probes.lock().unwrap()[own].closed()
    })
    .await;
    let open = probes
        .lock()
        .unwrap()
        .iter()
        .filter(|probe| !probe.closed())
        .count();
    assert_eq!(open, 2);
    drop((completions, choice));
    until("all are closed", || {
        probes.lock().unwrap().iter().all(Probe::closed)
    })
    .await;
}

#[tokio::test]
async fn only_so_many_requests_run_at_once() {
    let probes = Arc::new(Mutex::new(Vec::<Probe>::new()));
    let most = Arc::new(AtomicUsize::new(0));
    let (begun, peak) = (Arc::clone(&probes), Arc::clone(&most));
    let server = Server::start(move |_| {
        let script = Script::new([Step::Pause(Duration::from_millis(20)), bytes(one("a"))]);
        let mut begun = begun.lock().unwrap();
        begun.push(script.probe());
        let running = begun.iter().filter(|probe| !probe.closed()).count();
        peak.fetch_max(running, Ordering::SeqCst);
        server::stream(script)
    })
    .await;
    let client = server.builder().max_requests(2).build().unwrap();
    let completions = client.fan_out(&question(), 6);
    assert_eq!(ends(&completions).await.len(), 6);
    assert_eq!(server.requests().len(), 6);
    assert_eq!(most.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn the_first_byte_timeout_does_not_count_the_wait_for_a_turn() {
    const WAIT: Duration = Duration::from_millis(200);
    let server =
        Server::start(|_| server::stream(Script::new([Step::Pause(WAIT / 2), bytes(one("a"))])))
            .await;
    let client = server.builder().max_requests(1).first_byte_timeout(WAIT);
    let completions = client.build().unwrap().fan_out(&question(), 4);
    let expected = [
        "0 finished a",
        "1 finished a",
        "2 finished a",
        "3 finished a",
    ];
    assert_eq!(ends(&completions).await, expected);

    let server = Server::start(|_| server::stream(Script::new([Step::Stall]))).await;
    let client = server.builder().first_byte_timeout(WAIT).build().unwrap();
    let completions = client.fan_out(&question(), 1);
    let choice = completions.single().await.unwrap();
    let error = timeout(DEADLINE, choice.finished())
        .await
        .expect("it hangs");
    let Some(HttpError::TimedOut(passed)) = HttpError::cause_of(&error.unwrap_err()).cloned()
    else {
        panic!("the body has no byte");
    };
    assert_eq!(passed.timeout, unbraid::Timeout::FirstByte);
}

#[tokio::test]
async fn requests_that_wait_their_turn_are_never_sent_once_nobody_wants_them() {
    let (server, probes) = stalling().await;
    let client = server.builder().max_requests(2).build().unwrap();
    let completions = client.fan_out(&question(), 8);
    until("two requests", || probes.lock().unwrap().len() == 2).await;
    completions.cancel();
    assert!(matches!(
        completions.closed().await,
        Err(StreamError::Cancelled)
    ));
    until("both are closed", || {
        probes.lock().unwrap().iter().all(Probe::closed)
    })
    .await;
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn auto_asks_once_by_n_where_that_works() {
    let server = Server::start(|_| server::two_choices_answer()).await;
    let client = server.client();
    let request = question().n(2).choices(Choices::Auto);
    let completions = client.send(&request).await.unwrap();
    assert_eq!(
        ends(&completions).await,
        ["0 finished one", "1 finished two"]
    );
    assert!(completions.closed().await.is_ok());
    assert_eq!(server.requests().len(), 1);
    assert_eq!(bodies(&server)[0]["n"], 2);
}

#[tokio::test]
async fn auto_requests_each_choice_where_n_is_refused_and_remembers_it() {
    let server = Server::start(|ordinal| match ordinal {
        0 => full(
            400,
            "application/json",
            r#"{"error":{"message":"Only `n=1` is supported","type":"invalid_request_error"}}"#,
        ),
        _ => sse(one("a")),
    })
    .await;
    let client = server.client();
    let request = question().n(3).choices(Choices::Auto);
    for requests in [4, 7] {
        let completions = client.send(&request).await.unwrap();
        let expected = ["0 finished a", "1 finished a", "2 finished a"];
        assert_eq!(ends(&completions).await, expected);
        assert_eq!(server.requests().len(), requests);
    }
    let other = Request::chat("another")
        .user("Hello?")
        .n(2)
        .choices(Choices::Auto);
    let completions = client.send(&other).await.unwrap();
    assert_eq!(ends(&completions).await.len(), 2);
    assert_eq!(
        bodies(&server)[7]["n"],
        2,
        "another model is asked for itself"
    );
}

#[tokio::test]
async fn auto_requests_what_is_missing_where_n_is_ignored() {
    let server = Server::start(|ordinal| sse(one(&ordinal.to_string()))).await;
    let client = server.client();
    let request = question().n(3).choices(Choices::Auto);
    let completions = client.send(&request).await.unwrap();
    let ended = ends(&completions).await;
    assert_eq!(ended.len(), 3);
    assert_eq!(ended[0], "0 finished 0", "the first answer counts");
    assert_eq!(server.requests().len(), 3);
    assert_eq!(completions.usage().await.prompt_tokens, Some(15));
    let again = client.send(&request).await.unwrap();
    assert_eq!(ends(&again).await.len(), 3);
    assert!(
        bodies(&server)[3].get("n").is_none(),
        "by n nobody asks again"
    );
}

#[tokio::test]
async fn another_refusal_is_an_error_of_the_request() {
    let server = Server::start(|_| full(404, "text/plain", "no such model")).await;
    let request = question().n(3).choices(Choices::Auto);
    let error = server.client().send(&request).await.unwrap_err();
    assert_eq!(
        error.answer().map(unbraid_http::StatusError::status),
        Some(404)
    );
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn the_request_itself_may_ask_for_a_fan_out() {
    let server = Server::start(|_| sse(one("a"))).await;
    let request = question().n(2).choices(Choices::FanOut);
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
        .send(&request.choices(Choices::FanOut))
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

#[tokio::test]
async fn the_total_timeout_bounds_the_body_however_choices_are_asked_for() {
    for choices in [Choices::Native, Choices::FanOut, Choices::Auto] {
        let stalls = |_| server::stream(Script::new([bytes(content(0, "a")), Step::Stall]));
        let server = Server::start(stalls).await;
        let client = server
            .builder()
            .total_timeout(Duration::from_millis(300))
            .build()
            .unwrap();
        let completions = client
            .send(&question().n(2).choices(choices))
            .await
            .unwrap();
        let ends = ends(&completions).await;
        assert_eq!(ends[0], "0 timed_out a", "{choices:?}");
    }
}
