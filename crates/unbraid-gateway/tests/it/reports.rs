//! Section 12: reports from users of other projects, and section 11: faults. Each is one of our tests; [`table`] names them.

mod network;
mod table;

use std::{sync::Arc, time::Duration};

use tokio::sync::Semaphore;

use crate::support::{
    Reader, Step, Upstream, chunk, eventually, finish, request, send, sse, start, start_with,
};

fn event(data: &str) -> Step {
    Step::Send(format!("data: {data}\n\n"))
}

/// `resumable-stream` 47, `deer-flow` 3932: a reader whose producer died waits forever.
#[tokio::test]
async fn readers_end_when_the_gateway_that_produced_is_gone() {
    let upstream = Upstream::steps(vec![sse(), event(&chunk(0, "a")), Step::Hang]).await;
    let gateway = start(&upstream).await;
    let (id, mut post) = gateway.create(1).await;
    let mut view = gateway.view(&format!("/v1/streams/{id}/choices/0")).await;
    post.until("\"a\"").await;
    gateway.gateway.end_as_lost().await;
    for reader in [&mut post, &mut view] {
        let last = reader.rest().await.pop().unwrap();
        assert_eq!(last.json()["error"]["code"], "producer_lost");
    }
}

/// `assistant-ui` 3979: the stream expires under a reader. The lifetime counts from the end, so it cannot.
#[tokio::test]
async fn a_stream_does_not_expire_while_it_runs() {
    let gate = Arc::new(Semaphore::new(0));
    let upstream = Upstream::steps(vec![
        sse(),
        event(&chunk(0, "a")),
        Step::Gate(Arc::clone(&gate)),
        event(&finish(0)),
        event("[DONE]"),
        Step::End,
    ])
    .await;
    let gateway = start_with(&upstream, |builder| builder.ttl(Duration::from_millis(50))).await;
    let (_, mut post) = gateway.create(1).await;
    post.until("\"a\"").await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    gate.add_permits(1);
    assert_eq!(post.rest().await.last().unwrap().data, "[DONE]");
}

/// `resumable-stream` 42, 44, 45: a second of handshake with the producer, and no late resume.
#[tokio::test]
async fn a_late_reader_gets_everything_at_once() {
    let mut steps = vec![sse()];
    steps.extend((0..4000).map(|_| event(&chunk(0, "word "))));
    steps.extend([event(&finish(0)), event("[DONE]"), Step::End]);
    let upstream = Upstream::steps(steps).await;
    let gateway = start(&upstream).await;
    let (id, mut post) = gateway.create(1).await;
    let all = post.rest().await;
    assert_eq!(all.len(), 4002);
    let started = tokio::time::Instant::now();
    let mut view = gateway
        .view(&format!("/v1/streams/{id}/events?after=3000"))
        .await;
    view.until("data").await;
    let elapsed = started.elapsed();
    assert!(elapsed < Duration::from_secs(1), "{elapsed:?}");
    assert_eq!(view.rest().await, all[3000..]);
}

/// `scale-agentex` 241, `upstash/realtime` 23, `agentscope` 2123, `deer-flow` 4426: gaps between history and live events.
#[tokio::test]
async fn readers_that_reconnect_at_every_event_lose_and_repeat_nothing() {
    let mut steps = vec![sse()];
    for index in 0..60 {
        steps.push(event(&chunk(index % 2, &format!("t{index}"))));
        steps.push(Step::Sleep(Duration::from_millis(3)));
    }
    steps.extend([
        event(&finish(0)),
        event(&finish(1)),
        event("[DONE]"),
        Step::End,
    ]);
    let upstream = Upstream::steps(steps).await;
    let gateway = start(&upstream).await;
    let (id, mut post) = gateway.create(2).await;
    for path in ["events", "choices/1"] {
        let path = format!("/v1/streams/{id}/{path}");
        let (mut cursor, mut seen) = (0, Vec::new());
        loop {
            let request = gateway
                .get(&path)
                .header("last-event-id", cursor.to_string());
            let response = send(request).await;
            if response.status() == 204 {
                break;
            }
            let mut reader = Reader::new(response);
            reader.until("\n\n").await;
            for event in reader.events() {
                cursor = event.id.unwrap();
                seen.push(event);
            }
        }
        let all = gateway.view(&path).await.rest().await;
        assert_eq!(seen, all, "{path}");
    }
    post.rest().await;
}

/// `LiteLLM` 36429: work on disconnect froze the event loop. `hermes-agent` 85016: a reload destroyed the work.
#[tokio::test]
async fn a_hundred_clients_that_leave_disturb_nobody() {
    let gate = Arc::new(Semaphore::new(0));
    let held = Arc::clone(&gate);
    let upstream = Upstream::script(move |_, _| {
        vec![
            sse(),
            event(&chunk(0, "a")),
            Step::Gate(Arc::clone(&held)),
            event(&finish(0)),
            event("[DONE]"),
            Step::End,
        ]
    })
    .await;
    let gateway = start_with(&upstream, |builder| builder.max_streams_per_principal(200)).await;
    let mut ids = Vec::new();
    for _ in 0..100 {
        let response = send(gateway.post(request(1))).await;
        ids.push(
            response.headers()["x-stream-id"]
                .to_str()
                .unwrap()
                .to_owned(),
        );
    }
    eventually("all clients have left", async || {
        gateway.metric("unbraid_readers{view=\"post\"}") == 0.0
    })
    .await;
    gate.add_permits(100);
    for id in ids {
        assert_eq!(gateway.ended(&id).await["end"], "finished");
    }
    assert_eq!(upstream.closed(), 0);
}

/// `MCP SDK` 2499: the cursor is lost when a resumed stream drops before its first event. `Last-Event-ID` wins over the query,
/// so the client's own cursor is kept.
#[tokio::test]
async fn a_cursor_survives_a_connection_that_brought_nothing() {
    let upstream = Upstream::steps(vec![sse(), event(&chunk(0, "a")), Step::Hang]).await;
    let age = Duration::from_millis(100);
    let gateway = start_with(&upstream, |builder| builder.max_connection_age(Some(age))).await;
    let (id, mut post) = gateway.create(1).await;
    post.until("\"a\"").await;
    let mut view = gateway
        .view(&format!("/v1/streams/{id}/events?after=1"))
        .await;
    view.rest().await;
    assert!(
        !view.text.contains("id:") && !view.text.contains("data:"),
        "{}",
        view.text
    );
}

/// `onyx` 12436: chunks of an empty kind without end pin a worker.
#[tokio::test]
async fn empty_events_without_end_do_not_starve_other_requests() {
    let empty = r#"{"choices":[{"index":0,"delta":{}}]}"#;
    let many = format!("data: {empty}\n\n").repeat(2000);
    let mut steps = vec![sse()];
    steps.extend(std::iter::repeat_n(Step::Send(many), 100));
    steps.push(Step::Hang);
    let upstream = Upstream::steps(steps).await;
    let gateway = start_with(&upstream, |builder| builder.max_stream_bytes(4 << 20)).await;
    let (id, _post) = gateway.create(1).await;
    for _ in 0..20 {
        assert_eq!(send(gateway.get("/healthz")).await.status(), 200);
    }
    assert_eq!(gateway.ended(&id).await["end"], "limit_exceeded");
}
