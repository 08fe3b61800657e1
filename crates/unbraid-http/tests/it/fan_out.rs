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
use unbraid::{ChoiceEnd, Completions, StreamError, Timeout, UsageSource};
use unbraid_http::{ChoiceStrategy, Client, HttpError, Request, limits::MAX_FAN_OUT};
use unbraid_testkit::script::{DONE, Probe, Script, Step, bytes, content, finish};

use crate::server::{self, Answer, Server, full};

/// Far longer than anything here takes: what hangs fails.
const DEADLINE: Duration = Duration::from_secs(30);

pub(crate) fn question() -> Request {
    Request::chat("m").user("Hello?")
}

/// The answer of one choice, with its usage.
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

pub(crate) fn sse(body: String) -> Answer {
    full(200, "text/event-stream", body)
}

/// `index end text` of every choice, by index.
pub(crate) async fn ends(completions: &Completions) -> Vec<String> {
    let mut seen = Vec::new();
    let mut choices = completions.choices();
    while let Some(choice) = timeout(DEADLINE, choices.next()).await.expect("it hangs") {
        let Ok(choice) = choice else { break };
        let ended = timeout(DEADLINE, choice.outcome()).await.expect("it hangs");
        seen.push(format!(
            "{} {} {}",
            ended.choice,
            ended.end.as_str(),
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
    let Some(HttpError::Status(status)) = HttpError::find_in(&refused) else {
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
        HttpError::find_in(&error).map(HttpError::as_str),
        Some("status")
    );
}

/// The same as a text: what it is, and what the server says.
fn shown(error: &HttpError) -> String {
    format!(
        "{error}: {:?}",
        error.status_error().and_then(|a| a.message())
    )
}

#[tokio::test]
async fn a_fan_out_that_is_refused_as_a_whole_is_an_error_of_send() {
    const BODY: &str = r#"{"error":{"message":"no such key","code":"invalid_api_key"}}"#;
    let server = Server::start(|_| full(401, "application/json", BODY)).await;
    let mut errors = Vec::new();
    for choices in [
        ChoiceStrategy::Native,
        ChoiceStrategy::FanOut,
        ChoiceStrategy::Auto,
    ] {
        let request = question().n(3).choice_strategy(choices);
        let error = server.client().send(&request).await.unwrap_err();
        assert!(matches!(error, HttpError::Status(_)), "{error:?}");
        errors.push(shown(&error));
    }
    assert_eq!(
        errors[0],
        r#"status 401 Unauthorized (code invalid_api_key): Some("no such key")"#
    );
    assert_eq!(errors[1..], [errors[0].clone(), errors[0].clone()]);
    assert_eq!(server.requests().len(), 1 + 3 + 1);
}

#[tokio::test]
async fn auto_whose_further_requests_are_all_refused_is_an_error_of_send() {
    let server = Server::start(|ordinal| match ordinal {
        0 => full(400, "text/plain", "n must be 1"),
        _ => full(402, "text/plain", "no credit"),
    })
    .await;
    let client = server.client();
    for requests in [3, 5] {
        let request = question().n(2).choice_strategy(ChoiceStrategy::Auto);
        let error = client.send(&request).await.unwrap_err();
        let expected = r#"status 402 Payment Required: Some("no credit")"#;
        assert_eq!(shown(&error), expected);
        assert_eq!(server.requests().len(), requests);
    }
}

#[tokio::test]
async fn a_fan_out_that_reaches_nobody_is_an_error_of_send() {
    let (_closed, address) = server::closed_port();
    let client = Client::builder().base_url(format!("http://{address}/v1"));
    let client = client.proxy_from_env(false).retries(0).build().unwrap();
    let request = question().n(2).choice_strategy(ChoiceStrategy::FanOut);
    let error = client.send(&request).await.unwrap_err();
    assert!(matches!(error, HttpError::Connect { .. }), "{error:?}");
}

#[test]
fn a_fan_out_without_a_runtime_is_an_error_and_no_panic() {
    let client = Client::builder().build().unwrap();
    let request = question().n(2).choice_strategy(ChoiceStrategy::FanOut);
    let error = futures::executor::block_on(client.send(&request)).unwrap_err();
    assert!(matches!(error, HttpError::NoRuntime), "{error:?}");
}

#[tokio::test]
async fn a_fan_out_begins_with_its_first_answer_and_keeps_the_other_refusals() {
    let server = Server::start(|ordinal| match ordinal {
        2 => sse(one("fine")),
        _ => full(402, "text/plain", "no credit"),
    })
    .await;
    let client = server.builder().max_requests(1).build().unwrap();
    let request = question().n(4).choice_strategy(ChoiceStrategy::FanOut);
    let completions = client.send(&request).await.unwrap();
    let expected = [
        "0 transport ",
        "1 transport ",
        "2 finished fine",
        "3 transport ",
    ];
    assert_eq!(ends(&completions).await, expected);
    assert!(completions.closed().await.is_ok());
}

#[tokio::test]
async fn a_fan_out_of_too_many_requests_is_refused_before_the_first() {
    let server = Server::start(|_| sse(one("a"))).await;
    let client = server.client();
    let prompts = Request::text("m", serde_json::json!(["a", "b"]));
    for (request, expected) in [
        (question().n(MAX_FAN_OUT + 1), 1025),
        (prompts.n(513), 1026),
        (question().n(u32::MAX), u64::from(u32::MAX)),
    ] {
        for choices in [ChoiceStrategy::FanOut, ChoiceStrategy::Auto] {
            let request = request.clone().choice_strategy(choices);
            let error = client.send(&request).await.unwrap_err();
            let HttpError::TooManyChoices { requested, max } = error else {
                panic!("{error:?}")
            };
            assert_eq!((requested, max), (expected, 1024));
            let expected = format!("a fan-out of {expected} requests exceeds the limit of 1024");
            assert_eq!(error.to_string(), expected);
        }
    }
    let completions = client.fan_out(&question(), 1025);
    let closed = completions.closed().await.unwrap_err();
    let cause = HttpError::find_in(&closed).map(HttpError::as_str);
    assert_eq!(cause, Some("too_many_choices"));
    assert_eq!(server.requests().len(), 0);
}

#[tokio::test]
async fn a_fan_out_that_times_out_is_an_error_of_send() {
    let silent = Server::raw(|mut socket| async move {
        server::read_request(&mut socket).await;
        std::future::pending::<()>().await;
    })
    .await;
    let soon = Duration::from_millis(300);
    for (builder, expected) in [
        (silent.builder().total_timeout(soon), Timeout::Total),
        (
            silent.builder().first_byte_timeout(soon),
            Timeout::FirstByte,
        ),
        (silent.builder().idle_timeout(soon), Timeout::Idle),
    ] {
        let request = question().n(2).choice_strategy(ChoiceStrategy::FanOut);
        let error = builder.build().unwrap().send(&request).await.unwrap_err();
        let HttpError::TimedOut(passed) = error else {
            panic!("{error:?}")
        };
        assert_eq!(passed.timeout, expected);
    }
}

#[tokio::test]
async fn requests_that_wait_their_turn_are_not_late() {
    let server = Server::start(|ordinal| {
        let pause = Step::Pause(Duration::from_millis(700));
        server::stream(Script::new([pause, bytes(one(&ordinal.to_string()))]))
    })
    .await;
    let first_byte = Duration::from_secs(2);
    let client = server.builder().first_byte_timeout(first_byte);
    let client = client.max_requests(1).build().unwrap();
    let completions = client.fan_out(&question(), 4);
    let expected = [
        "0 finished 0",
        "1 finished 1",
        "2 finished 2",
        "3 finished 3",
    ];
    assert_eq!(ends(&completions).await, expected);
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
async fn each_request_of_a_fan_out_is_sent_again_whole() {
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
    let choice = completions.first().await.unwrap();
    let error = timeout(DEADLINE, choice.finished())
        .await
        .expect("it hangs");
    let error = error.unwrap_err();
    let ChoiceEnd::TimedOut(passed) = error.end() else {
        panic!(
            "the body has no byte, and the choice ended as {:?}",
            error.end()
        );
    };
    assert_eq!(passed.timeout, Timeout::FirstByte);
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
    let request = question().n(2).choice_strategy(ChoiceStrategy::Auto);
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
    let request = question().n(3).choice_strategy(ChoiceStrategy::Auto);
    for requests in [4, 7] {
        let completions = client.send(&request).await.unwrap();
        let expected = ["0 finished a", "1 finished a", "2 finished a"];
        assert_eq!(ends(&completions).await, expected);
        assert_eq!(server.requests().len(), requests);
    }
    let other = Request::chat("another")
        .user("Hello?")
        .n(2)
        .choice_strategy(ChoiceStrategy::Auto);
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
    let request = question().n(3).choice_strategy(ChoiceStrategy::Auto);
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
    let request = question().n(3).choice_strategy(ChoiceStrategy::Auto);
    let error = server.client().send(&request).await.unwrap_err();
    assert_eq!(
        error.status_error().map(unbraid_http::StatusError::status),
        Some(404)
    );
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn the_request_itself_may_ask_for_a_fan_out() {
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

#[tokio::test]
async fn the_total_timeout_bounds_the_body_however_choices_are_asked_for() {
    for choices in [
        ChoiceStrategy::Native,
        ChoiceStrategy::FanOut,
        ChoiceStrategy::Auto,
    ] {
        let stalls = |_| server::stream(Script::new([bytes(content(0, "a")), Step::Stall]));
        let server = Server::start(stalls).await;
        let client = server
            .builder()
            .total_timeout(Duration::from_millis(300))
            .build()
            .unwrap();
        let completions = client
            .send(&question().n(2).choice_strategy(choices))
            .await
            .unwrap();
        let ends = ends(&completions).await;
        assert_eq!(ends[0], "0 timed_out a", "{choices:?}");
    }
}
