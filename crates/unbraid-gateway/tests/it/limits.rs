//! Section 2: limits.

mod bodies;
mod complete;

use std::time::Duration;

use unbraid_gateway::{BuildError, Gateway, GatewayBuilder};

use crate::{
    create::error_code,
    support::{
        Step, Upstream, chunk, eventually, finish, request, send, sse, start, start_with, stream_of,
    },
};

async fn silent() -> Upstream {
    Upstream::steps(vec![
        sse(),
        Step::Send(format!("data: {}\n\n", chunk(0, "a"))),
        Step::Hang,
    ])
    .await
}

#[tokio::test]
async fn beyond_the_limit_on_streams_a_request_gets_429() {
    let upstream = silent().await;
    let gateway = start_with(&upstream, |builder| builder.max_streams(1)).await;
    let (id, _post) = gateway.create(1).await;
    let response = send(gateway.post(request(1))).await;
    assert_eq!(response.status(), 429);
    assert_eq!(response.headers()["retry-after"], "1");
    assert_eq!(error_code(response).await, "too_many_streams");
    let path = format!("/v1/streams/{id}/cancel");
    send(gateway.method("POST".parse().unwrap(), &path)).await;
    eventually("the place is free", async || {
        send(gateway.post(request(1))).await.status() == 200
    })
    .await;
    assert_eq!(upstream.seen().len(), 2, "a refused request is not sent");
}

#[tokio::test]
async fn beyond_the_limit_on_readers_a_view_gets_429_and_the_post_counts() {
    let upstream = silent().await;
    let gateway = start_with(&upstream, |builder| builder.max_readers(2)).await;
    let (id, post) = gateway.create(1).await;
    let path = format!("/v1/streams/{id}/events");
    let _view = gateway.view(&path).await;
    let response = send(gateway.get(&path)).await;
    assert_eq!(response.status(), 429);
    assert_eq!(response.headers()["retry-after"], "1");
    assert_eq!(error_code(response).await, "too_many_readers");
    drop(post);
    eventually("the place is free", async || {
        send(gateway.get(&path)).await.status() == 200
    })
    .await;
}

#[tokio::test]
async fn above_the_limit_on_memory_old_streams_are_evicted_and_then_requests_refused() {
    let long = "x".repeat(40_000);
    let events = [chunk(0, &long), finish(0), "[DONE]".to_owned()];
    let upstream = Upstream::script(move |_, ordinal| match ordinal {
        0..=2 => stream_of(&events),
        _ => {
            let mut steps = stream_of(&events[..1]);
            steps.pop();
            steps.push(Step::Hang);
            steps
        }
    })
    .await;
    let gateway = start_with(&upstream, |builder| builder.max_memory(100_000)).await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        let (id, mut post) = gateway.create(1).await;
        post.rest().await;
        gateway.ended(&id).await;
        ids.push(id);
    }
    let mut running = Vec::new();
    for _ in 0..3 {
        let (_, mut post) = gateway.create(1).await;
        post.until("\n\n").await;
        running.push(post);
    }
    for id in &ids {
        let response = send(gateway.get(&format!("/v1/streams/{id}"))).await;
        assert_eq!(response.status(), 410, "the oldest ended streams go first");
    }
    let sent = upstream.seen().len();
    let keyed = gateway.post(request(1)).header("idempotency-key", "k");
    for post in [gateway.post(request(1)), keyed] {
        let response = send(post).await;
        assert_eq!(response.status(), 503);
        assert_eq!(response.headers()["retry-after"], "1");
        assert_eq!(error_code(response).await, "out_of_memory");
    }
    assert_eq!(
        upstream.seen().len(),
        sent,
        "the upstream bills what it is sent"
    );
    // What is not kept needs no room.
    let live = gateway
        .post(request(1))
        .header("x-stream-durability", "live");
    assert_eq!(send(live).await.status(), 200);
}

#[tokio::test]
async fn more_choices_than_the_limit_are_refused_whatever_makes_them_several() {
    let upstream = Upstream::script(|_, _| stream_of(&["[DONE]"])).await;
    let gateway = start_with(&upstream, |builder| builder).await;
    let body = |n: u32, prompts: usize| {
        let prompts = vec![r#""p""#; prompts].join(",");
        format!(r#"{{"model":"m","stream":true,"n":{n},"prompt":[{prompts}]}}"#)
    };
    for body in [body(2, 1025), body(1, 1_000_000), body(129, 1)] {
        let post = gateway.post_to("/v1/completions", body);
        let response = send(post.header("x-stream-fan-out", "always")).await;
        assert_eq!(response.status(), 400);
        assert_eq!(error_code(response).await, "n_too_large");
    }
    assert!(upstream.seen().is_empty());
    let post = gateway.post_to("/v1/completions", body(2, 1000));
    let response = send(post).await;
    assert_eq!(response.status(), 200);
    let id = response.headers()["x-stream-id"].to_str().unwrap();
    let status = gateway.status(id).await;
    assert_eq!(status["choices"].as_array().unwrap().len(), 2000);
}

#[tokio::test]
async fn a_generation_without_a_reader_is_cancelled_if_configured() {
    let upstream = silent().await;
    let gateway = start_with(&upstream, |builder| {
        builder.orphan_after(Some(Duration::ZERO))
    })
    .await;
    let (id, mut post) = gateway.create(1).await;
    post.until("\"a\"").await;
    let view = gateway.view(&format!("/v1/streams/{id}/events")).await;
    drop(post);
    tokio::time::sleep(Duration::from_millis(150)).await;
    assert_eq!(upstream.closed(), 0, "a view is a reader, too");
    drop(view);
    eventually("the upstream is closed", async || upstream.closed() == 1).await;
    assert_eq!(gateway.ended(&id).await["end"], "cancelled");
}

#[tokio::test]
async fn a_reader_that_returns_in_time_keeps_the_generation() {
    let upstream = silent().await;
    let gateway = start_with(&upstream, |builder| builder).await;
    let post = gateway
        .post(request(1))
        .header("x-stream-orphan-after", "0.4");
    let response = send(post).await;
    let id = response.headers()["x-stream-id"]
        .to_str()
        .unwrap()
        .to_owned();
    drop(response);
    tokio::time::sleep(Duration::from_millis(100)).await;
    let view = gateway.view(&format!("/v1/streams/{id}/events")).await;
    tokio::time::sleep(Duration::from_millis(600)).await;
    assert_eq!(upstream.closed(), 0);
    drop(view);
    eventually("it is orphaned", async || upstream.closed() == 1).await;
}

/// Nothing else happens in the stream while this reader is there.
#[tokio::test]
async fn a_short_visit_of_a_reader_keeps_the_generation_for_as_long_again() {
    let upstream = silent().await;
    let gateway = start(&upstream).await;
    let post = gateway.post(request(1));
    let response = send(post.header("x-stream-orphan-after", "1.5")).await;
    let id = response.headers()["x-stream-id"].to_str().unwrap();
    let path = format!("/v1/streams/{id}/events");
    drop(response);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let left = tokio::time::Instant::now();
    gateway.view(&path).await.until("\"a\"").await;
    eventually("it is orphaned", async || upstream.closed() == 1).await;
    let waited = left.elapsed();
    assert!(waited >= Duration::from_millis(1500), "{waited:?}");
}

#[tokio::test]
async fn respond_async_is_never_orphaned() {
    let upstream = silent().await;
    let gateway = start_with(&upstream, |builder| {
        builder.orphan_after(Some(Duration::ZERO))
    })
    .await;
    let response = send(gateway.post(request(1)).header("prefer", "respond-async")).await;
    assert_eq!(response.status(), 202);
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!((upstream.seen().len(), upstream.closed()), (1, 0));
}

#[tokio::test]
async fn durations_without_a_bound_mean_forever() {
    let forever = Duration::MAX;
    // More than the socket of a reader takes that waits.
    let mut answer = vec![chunk(0, &"x".repeat(64 * 1024)); 300];
    answer.extend([finish(0), "[DONE]".to_owned()]);
    let upstream = Upstream::steps(stream_of(&answer)).await;
    let mut gateway = start_with(&upstream, |builder| {
        builder
            .linger(forever)
            .ttl(forever)
            .lease(forever)
            .orphan_after(Some(forever))
            .reader_stall(forever)
            .first_byte_timeout(forever)
            .idle_timeout(forever)
            .ping(forever)
            .max_connection_age(Some(forever))
            .drain_timeout(forever)
    })
    .await;
    let (id, mut post) = gateway.create(1).await;
    assert_eq!(gateway.ended(&id).await["end"], "finished");
    assert_eq!(post.rest().await.last().unwrap().data, "[DONE]");
    let keyed = gateway.post(request(1)).header("idempotency-key", "k");
    assert_eq!(send(keyed).await.status(), 200);
    gateway.drain();
    gateway.finished().await;
}

#[tokio::test]
async fn an_option_that_no_answer_can_meet_is_refused() {
    type Set = fn(GatewayBuilder) -> GatewayBuilder;
    let zeros: [(&str, Set); 8] = [
        ("lease", |builder| builder.lease(Duration::ZERO)),
        ("max_n", |builder| builder.max_n(0)),
        ("max_body", |builder| builder.max_body(0)),
        ("max_stream_bytes", |builder| builder.max_stream_bytes(0)),
        ("max_readers", |builder| builder.max_readers(0)),
        ("reader_stall", |builder| {
            builder.reader_stall(Duration::ZERO)
        }),
        ("first_byte_timeout", |builder| {
            builder.first_byte_timeout(Duration::ZERO)
        }),
        ("idle_timeout", |builder| {
            builder.idle_timeout(Duration::ZERO)
        }),
    ];
    for (name, set) in zeros {
        let error = set(Gateway::builder("http://127.0.0.1:1/v1"))
            .build()
            .unwrap_err();
        assert!(
            matches!(error, BuildError::Zero { option } if option == name),
            "{name}: {error}"
        );
        assert_eq!(error.to_string(), format!("{name} must not be zero"));
    }
}

#[tokio::test]
async fn with_a_limit_of_zero_streams_the_provider_is_not_asked_for_one() {
    let upstream = silent().await;
    let gateway = start_with(&upstream, |builder| builder.max_streams(0)).await;
    assert_eq!(send(gateway.post(request(1))).await.status(), 429);
    assert_eq!(upstream.seen().len(), 0);
}
