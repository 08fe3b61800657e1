//! What a gateway's handles, services and responses keep running.

use std::{sync::Arc, time::Duration};

use http_body_util::BodyExt;
use tokio::sync::Semaphore;
use tower_service::Service;
use unbraid_gateway::{FanOut, Gateway};

use crate::support::{Step, Upstream, chunk, eventually, finish, request, soon, sse};

fn event(data: &str) -> Step {
    Step::Send(format!("data: {data}\n\n"))
}

type Response = http::Response<axum::body::Body>;

async fn post(gateway: &Gateway, lines: &[(&str, &str)]) -> Response {
    let mut post = http::Request::post("http://localhost/v1/chat/completions")
        .header("content-type", "application/json");
    for (name, value) in lines {
        post = post.header(*name, *value);
    }
    let post = post.body(axum::body::Body::from(request(2))).unwrap();
    soon(gateway.service().call(post)).await.unwrap().unwrap()
}

fn gateway(upstream: &Upstream, fan_out: FanOut) -> Gateway {
    let gateway = Gateway::builder(upstream.url()).fan_out(fan_out);
    gateway.build().unwrap()
}

#[tokio::test]
async fn a_response_keeps_its_generation_after_every_handle_was_dropped() {
    let gate = Arc::new(Semaphore::new(0));
    let held = Arc::clone(&gate);
    let upstream = Upstream::script(move |_, _| {
        vec![
            sse(),
            event(&chunk(0, "a")),
            event(&chunk(1, "b")),
            Step::Gate(Arc::clone(&held)),
            event(&finish(0)),
            event(&finish(1)),
            event("[DONE]"),
            Step::End,
        ]
    })
    .await;
    let gateway = gateway(&upstream, FanOut::Native);
    let mut body = post(&gateway, &[]).await.into_body();
    drop(gateway);
    let first = soon(body.frame()).await.unwrap().unwrap().unwrap();
    assert!(first.into_data().unwrap().starts_with(b"retry"));
    // What ends without a handle has ended by then.
    tokio::time::sleep(Duration::from_millis(200)).await;
    gate.add_permits(1);
    let rest = soon(body.collect()).await.unwrap().unwrap().to_bytes();
    let rest = String::from_utf8(rest.to_vec()).unwrap();
    assert!(rest.ends_with("data: [DONE]\n\n"), "{rest}");
}

#[tokio::test]
async fn without_a_handle_a_service_and_a_response_no_generation_runs() {
    let (first, head) = (
        vec![sse(), event(&chunk(0, "a")), Step::Hang],
        vec![Step::Hang],
    );
    type Lines = &'static [(&'static str, &'static str)];
    let cases: [(FanOut, Lines, [&Vec<Step>; 2]); 5] = [
        (FanOut::Native, &[], [&first, &first]),
        // The requests for the missing choices may follow.
        (FanOut::Auto, &[], [&first, &first]),
        (FanOut::Auto, &[("idempotency-key", "k")], [&first, &first]),
        // Nothing has arrived yet.
        (FanOut::Auto, &[("prefer", "respond-async")], [&head, &head]),
        // One of the requests has no answer yet.
        (FanOut::Always, &[], [&first, &head]),
    ];
    for (fan_out, lines, steps) in cases {
        let steps = steps.map(Clone::clone);
        let upstream = Upstream::script(move |_, ordinal| steps[ordinal].clone()).await;
        let gateway = gateway(&upstream, fan_out);
        let response = post(&gateway, lines).await;
        let requests = if fan_out == FanOut::Always { 2 } else { 1 };
        eventually("the upstream is asked", async || {
            upstream.open() == requests
        })
        .await;
        drop(gateway);
        assert_eq!((upstream.open(), upstream.closed()), (requests, 0));
        drop(response);
        eventually(
            &format!("{fan_out:?} {lines:?}: every answer is closed"),
            async || upstream.open() == 0,
        )
        .await;
    }
}
