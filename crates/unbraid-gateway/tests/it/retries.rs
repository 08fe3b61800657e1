//! Which requests are sent to the upstream again: those whose answer cannot have begun.

use tokio::net::{TcpListener, TcpSocket};

use crate::{
    create::error_code,
    support::{
        Reader, Step, Upstream, chunk, eventually, finish, json_body, request, send, start_to,
        start_with, stream_of,
    },
};

const UNREACHABLE: &str = "unbraid_upstream_requests_total{status=\"502\"}";

#[tokio::test]
async fn retries_are_off_unless_configured() {
    for (retries, requests) in [(0, 1), (2, 3)] {
        let upstream = Upstream::steps(json_body(503, "{}")).await;
        let gateway = start_with(&upstream, |builder| builder.retries(retries)).await;
        assert_eq!(send(gateway.post(request(1))).await.status(), 503);
        assert_eq!(upstream.seen().len(), requests);
    }
}

#[tokio::test]
async fn a_request_that_the_upstream_may_work_on_is_not_sent_again() {
    for steps in [vec![Step::Cut], vec![Step::Reset]] {
        let upstream = Upstream::steps(steps).await;
        let gateway = start_with(&upstream, |builder| builder.retries(2)).await;
        let response = send(gateway.post(request(1))).await;
        assert_eq!(response.status(), 502);
        assert_eq!(error_code(response).await, "upstream_unreachable");
        assert_eq!(upstream.seen().len(), 1);
        assert_eq!(gateway.metric(UNREACHABLE), 1.0);
    }
}

#[tokio::test]
async fn a_request_that_found_no_upstream_is_sent_again() {
    // A socket that is bound and does not listen refuses connections, and nobody else gets its port.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let url = format!("http://{}/v1", socket.local_addr().unwrap());
    let gateway = start_to(&url, |builder| builder.retries(5)).await;
    let post = tokio::spawn(send(gateway.post(request(1))));
    eventually("the connection is refused", async || {
        gateway.metric(UNREACHABLE) >= 1.0
    })
    .await;
    let listener: TcpListener = socket.listen(16).unwrap();
    let answer = stream_of(&[chunk(0, "a"), finish(0), "[DONE]".into()]);
    let upstream = Upstream::script_on(listener, move |_, _| answer.clone());
    let mut reader = Reader::new(post.await.unwrap());
    assert_eq!(reader.rest().await.last().unwrap().data, "[DONE]");
    assert_eq!(upstream.seen().len(), 1);
}

/// The headers of OpenAI and Azure, as the SDKs follow them.
#[tokio::test]
async fn the_provider_says_whether_and_when_a_request_is_sent_again() {
    let far = "Fri, 31 Dec 2100 23:59:59 GMT";
    for (name, value, requests) in [
        ("x-should-retry", "false", 1),
        ("x-should-retry", "true", 2),
        ("retry-after", far, 1),
        ("retry-after", "99999999999999999999", 1),
        ("retry-after", "0", 2),
        ("retry-after-ms", "20", 2),
        ("retry-after-ms", "60000", 1),
    ] {
        let mut steps = json_body(429, "{}");
        if let Some(Step::Head(_, headers)) = steps.first_mut() {
            headers.push((name, value.to_owned()));
        }
        let upstream = Upstream::steps(steps).await;
        let gateway = start_with(&upstream, |builder| builder.retries(1)).await;
        assert_eq!(send(gateway.post(request(1))).await.status(), 429);
        assert_eq!(upstream.seen().len(), requests, "{name}: {value}");
    }
}

#[tokio::test]
async fn the_answer_of_the_provider_counts_more_than_a_timeout_in_a_pause() {
    let upstream = Upstream::steps(json_body(503, "{}")).await;
    let gateway = start_with(&upstream, |builder| {
        builder
            .retries(5)
            .first_byte_timeout(std::time::Duration::from_millis(400))
    })
    .await;
    assert_eq!(send(gateway.post(request(1))).await.status(), 503);
    assert_eq!(upstream.seen().len(), 2, "after 0 and 250 ms");
}
