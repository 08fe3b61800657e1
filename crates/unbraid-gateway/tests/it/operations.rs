//! Section 9: protocols, drain and metrics.

use std::{sync::Arc, time::Duration};

use reqwest::Method;
use tokio::{net::TcpStream, sync::Semaphore};
use unbraid_log::internal::scripted::Engine;

use crate::{
    create::error_code,
    support::{
        Step, Upstream, chunk, eventually, finish, request, send, soon, sse, start, start_with,
        stream_of,
    },
};

fn answer() -> Vec<Step> {
    stream_of(&[chunk(0, "a"), finish(0), "[DONE]".into()])
}

/// One event, and the rest after a permit.
pub(crate) async fn gated() -> (Upstream, Arc<Semaphore>) {
    let gate = Arc::new(Semaphore::new(0));
    let upstream = Upstream::steps(vec![
        sse(),
        Step::Send(format!("data: {}\n\n", chunk(0, "a"))),
        Step::Gate(Arc::clone(&gate)),
        Step::Send(format!("data: {}\n\ndata: [DONE]\n\n", finish(0))),
        Step::End,
    ])
    .await;
    (upstream, gate)
}

#[tokio::test]
async fn http2_with_prior_knowledge_shares_the_port() {
    let upstream = Upstream::steps(answer()).await;
    let gateway = start(&upstream).await;
    let socket = TcpStream::connect(gateway.address).await.unwrap();
    let (client, connection) = h2::client::handshake(socket).await.unwrap();
    tokio::spawn(connection);
    let mut client = client.ready().await.unwrap();
    let post = http::Request::post("http://localhost/v1/chat/completions")
        .header("content-type", "application/json")
        .body(())
        .unwrap();
    let (response, mut body) = client.send_request(post, false).unwrap();
    body.send_data(request(1).into(), true).unwrap();
    let mut response = soon(response).await.unwrap().unwrap();
    assert_eq!(response.status(), 200);
    let mut text = Vec::new();
    while let Some(bytes) = soon(response.body_mut().data()).await.unwrap() {
        let bytes = bytes.unwrap();
        response
            .body_mut()
            .flow_control()
            .release_capacity(bytes.len())
            .unwrap();
        text.extend_from_slice(&bytes);
    }
    assert!(text.ends_with(b"data: [DONE]\n\n"));
    let evil = http::Request::get("http://evil.com/healthz")
        .body(())
        .unwrap();
    let mut client = client.ready().await.unwrap();
    let (response, _) = client.send_request(evil, true).unwrap();
    assert_eq!(soon(response).await.unwrap().unwrap().status(), 403);
}

#[tokio::test]
async fn a_drain_lets_generations_finish_and_closes_everything_else() {
    let (upstream, gate) = gated().await;
    let mut gateway = start(&upstream).await;
    // An idle connection must not delay the exit.
    let _idle = TcpStream::connect(gateway.address).await.unwrap();
    assert_eq!(send(gateway.get("/readyz")).await.status(), 200);
    let (id, mut post) = gateway.create(1).await;
    post.until("\"a\"").await;
    let mut view = gateway.view(&format!("/v1/streams/{id}/events")).await;
    view.until("\"a\"").await;
    let mut service = gateway.gateway.service();
    gateway.drain();
    view.rest().await;
    assert!(
        !view.has_failed && !view.text.contains("DONE"),
        "it resumes elsewhere: {}",
        view.text
    );
    assert_eq!(
        gateway.metric("unbraid_reader_disconnects_total{reason=\"drain\"}"),
        1.0
    );
    eventually("new connections are refused", async || {
        TcpStream::connect(gateway.address).await.is_err()
    })
    .await;
    for (method, path) in [("POST", "/v1/chat/completions"), ("GET", "/readyz")] {
        use tower_service::Service;

        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header("host", "localhost")
            .header("content-type", "application/json")
            .body(axum::body::Body::from(request(1)))
            .unwrap();
        let response = service.call(request).await.unwrap();
        assert_eq!(response.status(), 503);
        assert_eq!(response.headers()["retry-after"], "1");
    }
    assert!(!gateway.has_stopped());
    gate.add_permits(1);
    assert_eq!(post.rest().await.last().unwrap().data, "[DONE]");
    eventually("the server stops", async || gateway.has_stopped()).await;
}

#[tokio::test]
async fn generations_that_outlast_the_drain_are_sealed_as_producer_lost() {
    let (upstream, _gate) = gated().await;
    let drain = Duration::from_millis(300);
    let mut gateway = start_with(&upstream, |builder| builder.drain_timeout(drain)).await;
    let (_, mut post) = gateway.create(1).await;
    post.until("\"a\"").await;
    gateway.drain();
    let events = post.rest().await;
    assert_eq!(
        events.last().unwrap().json()["error"]["code"],
        "producer_lost"
    );
    eventually("the server stops", async || gateway.has_stopped()).await;
    assert_eq!(upstream.closed(), 1);
    assert_eq!(
        gateway.metric("unbraid_streams_ended_total{end=\"producer_lost\"}"),
        1.0
    );
}

#[tokio::test]
async fn bodies_that_are_passed_through_are_cut_at_the_end_of_the_drain() {
    let mut steps = vec![sse()];
    for number in 0..1_000 {
        steps.push(Step::Send(format!(
            "data: {}\n\n",
            chunk(0, &format!("{number} "))
        )));
        steps.push(Step::Sleep(Duration::from_millis(20)));
    }
    let upstream = Upstream::steps(steps).await;
    let drain = Duration::from_millis(300);
    let mut gateway = start_with(&upstream, |builder| builder.drain_timeout(drain)).await;
    let live = gateway
        .post(request(1))
        .header("x-stream-durability", "live");
    let mut post = crate::support::Reader::new(send(live).await);
    post.until("0 ").await;
    gateway.drain();
    while !post.is_over {
        post.rest_or_cut().await;
    }
    assert!(post.has_failed, "the body was not complete");
    // The upstream's answer goes on for 20 s.
    assert!(!post.text.contains("\"500 \""), "{}", post.text.len());
    gateway.finished().await;
}

#[tokio::test]
async fn requests_that_outlast_the_drain_without_a_head_get_503() {
    let upstream = Upstream::steps(vec![Step::Hang]).await;
    let drain = Duration::from_millis(300);
    let mut gateway = start_with(&upstream, |builder| builder.drain_timeout(drain)).await;
    let whole = request(1).replace("\"stream\":true", "\"stream\":false");
    let waiting = [
        gateway.post(request(1)),
        // More than are sent at once.
        gateway
            .post(request(20))
            .header("x-stream-fan-out", "always"),
        gateway.post(request(1)).header("idempotency-key", "k"),
        gateway
            .post(request(1))
            .header("x-stream-durability", "live"),
        gateway.post(whole),
        gateway.get("/v1/models"),
    ]
    .map(|request| tokio::spawn(send(request)));
    eventually("all wait", async || upstream.seen().len() == 21).await;
    gateway.drain();
    for response in waiting {
        let response = response.await.unwrap();
        assert_eq!(response.status(), 503);
        assert_eq!(error_code(response).await, "draining");
    }
    assert_eq!(upstream.seen().len(), 21, "nothing more is sent");
    eventually("the server stops", async || gateway.has_stopped()).await;
}

#[tokio::test]
async fn a_drain_without_work_ends_at_once_although_connections_are_idle() {
    let upstream = Upstream::steps(answer()).await;
    let mut gateway = start(&upstream).await;
    assert_eq!(send(gateway.get("/healthz")).await.status(), 200); // the client keeps its connection
    let _silent = TcpStream::connect(gateway.address).await.unwrap();
    gateway.drain();
    let started = tokio::time::Instant::now();
    eventually("the server stops", async || gateway.has_stopped()).await;
    assert!(
        started.elapsed() < Duration::from_secs(3),
        "{:?}",
        started.elapsed()
    );
}

#[tokio::test]
async fn metrics_count_what_happens_and_contain_no_ids() {
    let upstream = Upstream::steps(answer()).await;
    let gateway = start(&upstream).await;
    let (id, mut post) = gateway.create(1).await;
    post.rest().await;
    gateway.ended(&id).await;
    gateway
        .view(&format!("/v1/streams/{id}/choices/0?after=1"))
        .await
        .rest()
        .await;
    eventually("the readers have left", async || {
        gateway.metric("unbraid_readers{view=\"choice\"}") == 0.0
    })
    .await;
    let response = send(gateway.get("/metrics")).await;
    let content_type = response.headers()["content-type"]
        .to_str()
        .unwrap()
        .to_owned();
    assert!(
        content_type.starts_with("application/openmetrics-text"),
        "{content_type}"
    );
    let text = response.text().await.unwrap();
    for line in [
        "unbraid_streams_started_total{endpoint=\"/v1/chat/completions\",fan_out=\"false\"} 1",
        "unbraid_streams_running 0",
        "unbraid_streams_ended_total{end=\"finished\"} 1",
        "unbraid_resumes_total{view=\"choice\"} 1",
        "unbraid_upstream_requests_total{status=\"200\"} 1",
        "unbraid_upstream_first_byte_seconds_count 1",
        "unbraid_log_degraded 0",
        "unbraid_log_repairs_total 0",
        // Counters start at 0, so that their first event counts.
        "unbraid_choices_cancelled_total{upstream=\"closed\"} 0",
        "unbraid_reader_disconnects_total{reason=\"slow\"} 0",
        "unbraid_resumes_total{view=\"combined\"} 0",
        "unbraid_log_appends_total{backend=\"memory\",result=\"error\"} 0",
    ] {
        assert!(text.lines().any(|known| known == line), "{line}: {text}");
    }
    for name in [
        "unbraid_log_appends_total{backend=\"memory\",result=\"new\"}",
        "unbraid_delivery_seconds_count",
        "unbraid_log_append_seconds_count",
    ] {
        assert!(gateway.metric(name) >= 1.0, "{name}");
    }
    assert!(gateway.metric("unbraid_log_bytes") > 0.0);
    assert!(text.ends_with("# EOF\n"));
    assert!(!text.contains(&id) && !text.contains("\"m\""));
}

#[tokio::test]
async fn only_what_the_upstream_has_just_sent_counts_as_delivered() {
    let steps = vec![
        sse(),
        Step::Send(format!("data: {}\n\n", chunk(0, "a"))),
        Step::Sleep(Duration::from_secs(600)),
    ];
    let upstream = Upstream::steps(steps).await;
    let gateway = start(&upstream).await;
    let (id, mut first) = gateway.create(1).await;
    first.until("\"a\"").await;
    let delivered = gateway.metric("unbraid_delivery_seconds_count");
    for from in ["start", "snapshot", "tail"] {
        let path = format!("/v1/streams/{id}/events?from={from}");
        gateway.view(&path).await.until("data: ").await;
    }
    let path = format!("/v1/streams/{id}/cancel");
    send(gateway.method(Method::POST, &path)).await;
    first.until("[DONE]").await;
    assert_eq!(gateway.metric("unbraid_delivery_seconds_count"), delivered);
}

#[tokio::test]
async fn metrics_can_be_kept_off_the_main_port() {
    let upstream = Upstream::steps(answer()).await;
    let gateway = start_with(&upstream, |builder| builder.serve_metrics(false)).await;
    let response = send(gateway.get("/metrics")).await;
    assert_eq!(response.status(), 404);
    assert_eq!(error_code(response).await, "not_found");
}

#[tokio::test]
async fn events_that_follow_each_other_soon_are_appended_together_if_the_gateway_lingers() {
    let event = |data: &str| Step::Send(format!("data: {data}\n\n"));
    let pause = || Step::Sleep(Duration::from_millis(30));
    let upstream = Upstream::steps(vec![
        sse(),
        event(&chunk(0, "a")),
        pause(),
        event(&finish(0)),
        pause(),
        event("[DONE]"),
        Step::End,
    ])
    .await;
    // Longer than the answer, so that only its end appends, and shorter than the renewal of the lease.
    let linger = Duration::from_secs(3);
    let log = Engine::new(Duration::from_secs(30)).gateway();
    let gateway = start_with(&upstream, |builder| builder.log(log).linger(linger)).await;
    let (_, mut post) = gateway.create(1).await;
    assert_eq!(post.rest().await.last().unwrap().data, "[DONE]");
    let appends = "unbraid_log_appends_total{backend=\"other\",result=\"new\"}";
    assert_eq!(gateway.metric(appends), 1.0);
}

#[tokio::test]
async fn a_log_in_memory_delivers_at_once_although_the_gateway_lingers() {
    let delta = format!("data: {}\n\n", chunk(0, "a"));
    let upstream = Upstream::steps(vec![sse(), Step::Send(delta), Step::Hang]).await;
    let gateway = start_with(&upstream, |builder| builder.linger(Duration::MAX)).await;
    let (_, mut post) = gateway.create(1).await;
    post.until("\"content\":\"a\"").await;
}

/// Sends a request over HTTP/2, and reads nothing of the response's body.
async fn stall_over_http2(gateway: &crate::support::TestGateway, live: bool) -> h2::RecvStream {
    let socket = TcpStream::connect(gateway.address).await.unwrap();
    let (client, connection) = h2::client::handshake(socket).await.unwrap();
    tokio::spawn(connection);
    let mut client = client.ready().await.unwrap();
    let uri = match live {
        true => "http://localhost/v1/chat/completions",
        false => "http://localhost/v1/models",
    };
    let request = http::Request::builder()
        .method(if live { "POST" } else { "GET" })
        .uri(uri)
        .header("content-type", "application/json")
        .header("x-stream-durability", "live")
        .body(())
        .unwrap();
    let (response, mut body) = client.send_request(request, !live).unwrap();
    if live {
        body.send_data(request_body(), true).unwrap();
    }
    let response = soon(response).await.unwrap().unwrap();
    assert_eq!(response.status(), 200);
    response.into_body()
}

fn request_body() -> bytes::Bytes {
    request(1).into()
}

#[tokio::test]
async fn an_http2_stream_that_is_not_read_is_reset_whatever_it_carries() {
    let mut steps = vec![sse()];
    let long = format!("data: {}\n\n", chunk(0, &"x".repeat(16 * 1024)));
    steps.extend(std::iter::repeat_n(Step::Send(long), 64));
    steps.push(Step::Hang);
    let upstream = Upstream::steps(steps).await;
    let stall = Duration::from_millis(300);
    let gateway = start_with(&upstream, |builder| builder.reader_stall(stall)).await;
    for (live, closed) in [(true, 1), (false, 2)] {
        let _unread = stall_over_http2(&gateway, live).await;
        eventually("the upstream is closed", async || {
            upstream.closed() == closed
        })
        .await;
    }
}
