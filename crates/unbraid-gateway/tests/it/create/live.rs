//! Section 3: streams that are not kept.

use crate::support::{Reader, Step, Upstream, chunk, eventually, request, send, sse, start};

#[tokio::test]
async fn a_live_stream_is_the_upstreams_bytes_and_nothing_is_kept() {
    let raw = ": comment\nevent: x\nid: up\ndata: {\"a\":1}\n\ndata: [DONE]\n\n";
    let upstream = Upstream::steps(vec![sse(), Step::Send(raw.into()), Step::End]).await;
    let gateway = start(&upstream).await;
    let response = send(
        gateway
            .post(request(1))
            .header("x-stream-durability", "live"),
    )
    .await;
    assert!(!response.headers().contains_key("x-stream-id"));
    assert_eq!(response.text().await.unwrap(), raw);
}

#[tokio::test]
async fn a_live_stream_closes_the_upstream_when_its_client_leaves() {
    let upstream = Upstream::steps(vec![
        sse(),
        Step::Send(format!("data: {}\n\n", chunk(0, "a"))),
        Step::Hang,
    ])
    .await;
    let gateway = start(&upstream).await;
    let response = send(
        gateway
            .post(request(1))
            .header("x-stream-durability", "live"),
    )
    .await;
    let mut reader = Reader::new(response);
    reader.until("\"a\"").await;
    drop(reader);
    eventually("the upstream is closed", async || upstream.closed() == 1).await;
}

/// `LiteLLM` 37140, `Bifrost` 3164: an answer that is not streamed is still generated after its client has left.
#[tokio::test]
async fn an_answer_without_stream_closes_the_upstream_when_its_client_leaves() {
    let upstream = Upstream::steps(vec![
        Step::Head(200, vec![("content-type", "application/json".into())]),
        Step::Send("{\"choices\":".into()),
        Step::Hang,
    ])
    .await;
    let gateway = start(&upstream).await;
    let response = send(gateway.post(r#"{"model":"m"}"#)).await;
    assert_eq!(response.status(), 200);
    drop(response);
    eventually("the upstream is closed", async || upstream.closed() == 1).await;
}
