//! Section 3: what is passed through as it is.

use crate::support::{
    Step, TestGateway, Upstream, answer, json_body, raw, send, start, start_with,
};

#[tokio::test]
async fn models_are_passed_through_and_other_paths_only_if_configured() {
    let upstream = Upstream::steps(json_body(200, r#"{"data":[]}"#)).await;
    let gateway = start(&upstream).await;
    for path in ["/v1/models", "/v1/models/org/name?x=1"] {
        assert_eq!(
            send(gateway.get(path)).await.text().await.unwrap(),
            r#"{"data":[]}"#
        );
    }
    assert_eq!(upstream.seen()[1].target, "/v1/models/org/name?x=1");
    assert_eq!(
        send(gateway.post_to("/v1/embeddings", "{}")).await.status(),
        404
    );
    let delete = |gateway: &TestGateway| {
        let method = reqwest::Method::DELETE;
        send(gateway.method(method, "/v1/models/ft:x"))
    };
    assert_eq!(delete(&gateway).await.status(), 405);
    let gateway = start_with(&upstream, |builder| builder.pass_through(true)).await;
    assert_eq!(
        send(gateway.post_to("/v1/embeddings", "{ }"))
            .await
            .status(),
        200
    );
    let seen = upstream.seen().pop().unwrap();
    assert_eq!(
        (seen.target.as_str(), seen.body.as_slice()),
        ("/v1/embeddings", &b"{ }"[..])
    );
    // What the gateway would obey, on a path of its own, is the provider's to obey here.
    let keyed = gateway.post_to("/v1/embeddings", "{ }");
    let keyed = keyed
        .header("idempotency-key", "k")
        .header("prefer", "wait");
    assert_eq!(send(keyed).await.status(), 200);
    let seen = upstream.seen().pop().unwrap();
    assert_eq!(seen.headers["idempotency-key"], "k");
    assert_eq!(seen.headers["prefer"], "wait");
    assert_eq!(delete(&gateway).await.status(), 200);
    let seen = upstream.seen().pop().unwrap();
    assert_eq!(
        (&*seen.method, &*seen.target),
        ("DELETE", "/v1/models/ft:x")
    );
    for path in ["/v1/streamsx", "/v1/streams-x/y"] {
        assert_eq!(send(gateway.get(path)).await.status(), 200, "{path}");
        assert_eq!(upstream.seen().pop().unwrap().target, path);
    }
    for path in [
        "/v2/x",
        "/x",
        "/v1/streams",
        "/v1/streams/",
        "/v1/streams/x/y",
    ] {
        assert_eq!(send(gateway.get(path)).await.status(), 404, "{path}");
    }
}

/// The response to a request line, to the end of its connection.
async fn exchange(gateway: &TestGateway, request_line: &str) -> String {
    let head = format!("{request_line}\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    answer(raw(gateway, head.as_bytes()).await).await
}

/// A client of HTTP/1.0 takes the end of the connection for the end of a body without a length.
#[tokio::test]
async fn a_body_keeps_its_length_so_that_a_cut_can_be_seen() {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 11\r\n\r\n";
    let steps = |body: &str| vec![Step::Raw(format!("{head}{body}")), Step::Cut];
    for version in ["HTTP/1.0", "HTTP/1.1"] {
        let upstream = Upstream::steps(steps(r#"{"data":[]}"#)).await;
        let gateway = start(&upstream).await;
        let whole = exchange(&gateway, &format!("GET /v1/models {version}")).await;
        assert!(whole.contains("content-length: 11\r\n"), "{whole}");
        assert!(whole.ends_with(r#"{"data":[]}"#), "{whole}");
        let head_only = exchange(&gateway, &format!("HEAD /v1/models {version}")).await;
        assert!(head_only.ends_with("\r\n\r\n"), "{head_only}");

        let upstream = Upstream::steps(steps(r#"{"data"#)).await;
        let gateway = start(&upstream).await;
        let cut = exchange(&gateway, &format!("GET /v1/models {version}")).await;
        assert!(cut.contains("content-length: 11\r\n"), "{cut}");
        assert!(cut.ends_with(r#"{"data"#), "{cut}");
    }
}

#[tokio::test]
async fn a_backslash_does_not_become_a_slash() {
    let upstream = Upstream::steps(json_body(200, "{}")).await;
    let gateway = start_with(&upstream, |builder| builder.pass_through(true)).await;
    let response = exchange(&gateway, r"GET /v1/files/a\b?c=\d HTTP/1.1").await;
    let seen = upstream.seen();
    match seen.first() {
        Some(seen) => assert_eq!(seen.target, r"/v1/files/a%5Cb?c=\d", "{response}"),
        None => panic!("{response}"),
    }
}

/// RFC 9112, section 6.3: such a length counts for nothing, and a proxy removes it. The answer was cut to it.
#[tokio::test]
async fn a_length_beside_chunks_does_not_cut_the_answer() {
    let head = Step::Head(200, vec![("content-length", "5".to_owned())]);
    let body = r#"{"choices":[]}"#;
    let steps = vec![head, Step::Send(body.to_owned()), Step::End];
    let upstream = Upstream::steps(steps).await;
    let gateway = start(&upstream).await;
    for request in [
        gateway.get("/v1/models"),
        gateway.post(r#"{"model":"m","messages":[]}"#),
    ] {
        assert_eq!(send(request).await.text().await.unwrap(), body);
    }
}
