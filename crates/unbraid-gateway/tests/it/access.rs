//! Section 7: authentication.

use std::io::Write;

use serde_json::{Value, json};
use tempfile::NamedTempFile;
use unbraid_gateway::NewKey;

use crate::{
    create::error_code,
    support::{
        Json, Reader, TestGateway, Upstream, chunk, finish, json_body, request, send, start,
        start_with, stream_of,
    },
};

async fn upstream() -> Upstream {
    Upstream::steps(stream_of(&[chunk(0, "a"), finish(0), "[DONE]".into()])).await
}

struct Keys {
    file: NamedTempFile,
    alice: NewKey,
    bob: NewKey,
}

impl Keys {
    fn new() -> Self {
        let (alice, bob) = (
            NewKey::generate("alice").unwrap(),
            NewKey::generate("bob").unwrap(),
        );
        let mut file = NamedTempFile::new().unwrap();
        writeln!(file, "{}\n{}", alice.line(), bob.line()).unwrap();
        Self { file, alice, bob }
    }
}

async fn with_keys(upstream: &Upstream, keys: &Keys) -> TestGateway {
    start_with(upstream, |builder| builder.auth_file(keys.file.path())).await
}

/// Creates a stream as this principal.
async fn create(gateway: &TestGateway, key: &NewKey) -> String {
    let response = send(gateway.post(request(1)).bearer_auth(key.key())).await;
    assert_eq!(response.status(), 200);
    let id = response.headers()["x-stream-id"]
        .to_str()
        .unwrap()
        .to_owned();
    Reader::new(response).rest().await;
    id
}

#[tokio::test]
async fn a_key_is_required_except_where_nothing_is_protected() {
    let (upstream, keys) = (upstream().await, Keys::new());
    let gateway = with_keys(&upstream, &keys).await;
    for request in [
        gateway.post(request(1)),
        gateway.post(request(1)).bearer_auth("wrong"),
        gateway
            .post(request(1))
            .header("authorization", keys.alice.key()),
        gateway.get("/v1/models"),
        gateway.get("/metrics"),
        gateway.get("/v1/streams/AAAAAAAAAAAAAAAAAAAAAA"),
    ] {
        let response = send(request).await;
        assert_eq!(response.status(), 401);
        assert_eq!(response.headers()["www-authenticate"], "Bearer");
        assert_eq!(error_code(response).await, "invalid_api_key");
    }
    for path in ["/healthz", "/readyz"] {
        let response = send(gateway.get(path)).await;
        assert_eq!(response.value().await, json!({"status": "ok"}));
    }
    assert_eq!(
        send(gateway.get("/metrics").bearer_auth(keys.alice.key()))
            .await
            .status(),
        200
    );
    create(&gateway, &keys.alice).await;
    assert!(
        !upstream.seen()[0].headers.contains_key("authorization"),
        "the key is the gateway's"
    );
}

#[tokio::test]
async fn a_stream_of_another_owner_is_answered_like_an_unknown_one() {
    let (upstream, keys) = (upstream().await, Keys::new());
    let gateway = with_keys(&upstream, &keys).await;
    let id = create(&gateway, &keys.alice).await;
    for path in ["", "/events", "/choices/0"] {
        let answer = async |id: &str, key: &NewKey| {
            let get = gateway
                .get(&format!("/v1/streams/{id}{path}"))
                .bearer_auth(key.key());
            let response = send(get).await;
            (response.status().as_u16(), response.text().await.unwrap())
        };
        let other = answer(&id, &keys.bob).await;
        assert_eq!(other, answer("AAAAAAAAAAAAAAAAAAAAAA", &keys.bob).await);
        assert_eq!(other.0, 404);
        assert_eq!(answer(&id, &keys.alice).await.0, 200);
    }
    for (method, path) in [
        ("DELETE", ""),
        ("DELETE", "/choices/0"),
        ("POST", "/cancel"),
        ("POST", "/links"),
    ] {
        let path = format!("/v1/streams/{id}{path}");
        let request = gateway
            .method(method.parse().unwrap(), &path)
            .bearer_auth(keys.bob.key());
        assert_eq!(send(request).await.status(), 404, "{method} {path}");
    }
    assert_eq!(create(&gateway, &keys.alice).await.len(), 22);
}

#[tokio::test]
async fn the_auth_file_is_read_again() {
    let (upstream, keys) = (upstream().await, Keys::new());
    let gateway = with_keys(&upstream, &keys).await;
    let carol = NewKey::generate("carol").unwrap();
    std::fs::write(keys.file.path(), carol.line()).unwrap();
    gateway.gateway.reload_keys().unwrap();
    assert_eq!(
        send(gateway.get("/metrics").bearer_auth(keys.alice.key()))
            .await
            .status(),
        401
    );
    assert_eq!(
        send(gateway.get("/metrics").bearer_auth(carol.key()))
            .await
            .status(),
        200
    );
}

#[tokio::test]
async fn without_keys_only_loopback_hosts_and_known_origins_are_served() {
    let upstream = upstream().await;
    let gateway = start_with(&upstream, |builder| {
        builder
            .allow_host("gateway.lan")
            .cors_origin("https://app.example")
    })
    .await;
    let own = format!("http://{}", gateway.address);
    for (header, value, status, code) in [
        ("host", "evil.com", 403, "host_not_allowed"),
        ("host", "localhost.evil.com", 403, "host_not_allowed"),
        ("host", "localhost:1", 200, ""),
        ("host", "gateway.lan:5", 200, ""),
        ("origin", "https://evil.com", 403, "origin_not_allowed"),
        ("origin", "null", 403, "origin_not_allowed"),
        ("origin", "https://app.example", 200, ""),
        ("origin", own.as_str(), 200, ""),
    ] {
        let response = send(gateway.post(request(1)).header(header, value)).await;
        assert_eq!(response.status(), status, "{header}: {value}");
        if status == 403 {
            assert_eq!(error_code(response).await, code);
        }
    }
}

#[tokio::test]
async fn a_listed_origin_gets_cors_headers_and_another_none() {
    let upstream = Upstream::script(|_, _| {
        let mut steps = json_body(200, "{}");
        steps[0] = crate::support::Step::Head(
            200,
            vec![
                ("content-type", "application/json".into()),
                ("access-control-allow-origin", "*".into()),
            ],
        );
        steps
    })
    .await;
    let keys = Keys::new();
    let gateway = start_with(&upstream, |builder| {
        builder
            .auth_file(keys.file.path())
            .cors_origin("https://app.example")
    })
    .await;
    let preflight = gateway
        .method("OPTIONS".parse().unwrap(), "/v1/streams/x/events")
        .header("origin", "https://app.example")
        .header("access-control-request-method", "GET")
        .header(
            "access-control-request-headers",
            "Last-Event-ID,x-stainless-os,x-evil",
        );
    let response = send(preflight).await;
    assert_eq!(response.status(), 204);
    let header = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
    assert_eq!(header("access-control-allow-origin"), "https://app.example");
    assert_eq!(header("access-control-allow-methods"), "GET, POST, DELETE");
    assert_eq!(
        header("access-control-allow-headers"),
        "last-event-id, x-stainless-os"
    );
    assert_eq!(header("access-control-max-age"), "600");
    assert_eq!(header("vary"), "Origin");
    for (origin, expected) in [
        ("https://app.example", Some("https://app.example")),
        ("https://evil.com", None),
    ] {
        let get = gateway
            .get("/v1/models")
            .bearer_auth(keys.alice.key())
            .header("origin", origin);
        let response = send(get).await;
        assert_eq!(response.status(), 200);
        let allowed = response.headers().get("access-control-allow-origin");
        assert_eq!(allowed.map(|value| value.to_str().unwrap()), expected);
        let exposed = response.headers().get("access-control-expose-headers");
        assert_eq!(exposed.is_some(), expected.is_some());
        assert!(
            !response
                .headers()
                .contains_key("access-control-allow-credentials")
        );
    }
}

async fn links(gateway: &TestGateway, id: &str, key: &NewKey, body: &str) -> Value {
    let post = gateway.post_to(&format!("/v1/streams/{id}/links"), body.to_owned());
    let response = send(post.bearer_auth(key.key())).await;
    assert_eq!(response.status(), 201);
    response.value().await
}

#[tokio::test]
async fn a_link_permits_reading_one_stream_without_a_key() {
    let (upstream, keys) = (upstream().await, Keys::new());
    let gateway = with_keys(&upstream, &keys).await;
    let id = create(&gateway, &keys.alice).await;
    let other = create(&gateway, &keys.alice).await;
    let made = links(
        &gateway,
        &id,
        &keys.alice,
        r#"{"scope":"read","expires_in":60}"#,
    )
    .await;
    assert!(made["expires"].is_u64());
    for url in [&made["status"], &made["events"], &made["choices"][0]] {
        let response = send(gateway.get(url.as_str().unwrap())).await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["referrer-policy"], "no-referrer");
    }
    let query = query_of(&made);
    for (method, path) in [
        ("GET", format!("/v1/streams/{other}")),
        ("DELETE", format!("/v1/streams/{id}")),
        ("DELETE", format!("/v1/streams/{id}/choices/0")),
        ("POST", format!("/v1/streams/{id}/cancel")),
        ("POST", format!("/v1/streams/{id}/links")),
    ] {
        let request = gateway.method(method.parse().unwrap(), &format!("{path}?{query}"));
        let response = send(request).await;
        assert_eq!(response.status(), 403, "{method} {path}");
        assert_eq!(error_code(response).await, "link_invalid");
    }
    let longer = query.replace("exp=", "exp=9");
    assert_eq!(
        send(gateway.get(&format!("/v1/streams/{id}?{longer}")))
            .await
            .status(),
        403
    );
}

/// The parameters that permit what the link permits.
fn query_of(made: &Value) -> String {
    let (_, query) = made["status"].as_str().unwrap().split_once('?').unwrap();
    query.to_owned()
}

#[tokio::test]
async fn a_link_with_the_scope_cancel_also_cancels() {
    let (upstream, keys) = (upstream().await, Keys::new());
    let gateway = with_keys(&upstream, &keys).await;
    let id = create(&gateway, &keys.alice).await;
    let made = links(&gateway, &id, &keys.alice, r#"{"scope":"cancel"}"#).await;
    let query = query_of(&made);
    for (method, path) in [
        ("DELETE", "/choices/0"),
        ("POST", "/cancel"),
        ("GET", "/events"),
    ] {
        let path = format!("/v1/streams/{id}{path}?{query}");
        assert_eq!(
            send(gateway.method(method.parse().unwrap(), &path))
                .await
                .status(),
            200
        );
    }
}

/// A link has its end in whole seconds, so one for a second may have expired when it arrives.
#[tokio::test]
async fn a_link_expires() {
    let (upstream, keys) = (upstream().await, Keys::new());
    let gateway = with_keys(&upstream, &keys).await;
    let id = create(&gateway, &keys.alice).await;
    let made = links(&gateway, &id, &keys.alice, r#"{"expires_in":1}"#).await;
    let expires = made["expires"].as_u64().unwrap();
    let expires = std::time::UNIX_EPOCH + std::time::Duration::from_secs(expires);
    let left = expires.duration_since(std::time::SystemTime::now());
    tokio::time::sleep(left.unwrap_or_default()).await;
    let path = format!("/v1/streams/{id}?{}", query_of(&made));
    let response = send(gateway.get(&path)).await;
    assert_eq!(response.status(), 403);
    assert_eq!(error_code(response).await, "link_expired");
}

#[tokio::test]
async fn links_of_gateways_with_the_same_secret_are_the_same() {
    let upstream = upstream().await;
    let gateway = start_with(&upstream, |builder| builder.link_secret("a secret of 16 b")).await;
    let (id, mut post) = gateway.create(1).await;
    post.rest().await;
    let response = send(gateway.post_to(&format!("/v1/streams/{id}/links"), "{}")).await;
    let made: Value = response.value().await;
    assert_eq!(
        send(gateway.get(made["events"].as_str().unwrap()))
            .await
            .status(),
        200
    );
    let gateway = start(&upstream).await;
    assert_eq!(
        send(gateway.get(made["events"].as_str().unwrap()))
            .await
            .status(),
        403
    );
}

#[tokio::test]
async fn a_short_link_secret_is_refused() {
    for (secret, is_long_enough) in [
        ("", false),
        ("  \n", false),
        ("fifteen bytes..  ", false),
        ("sixteen bytes...", true),
    ] {
        let builder = unbraid_gateway::Gateway::builder("http://127.0.0.1:1/v1");
        match builder.link_secret(secret).build() {
            Ok(_) => assert!(is_long_enough, "{secret:?}"),
            Err(error) => assert!(
                !is_long_enough && matches!(error, unbraid_gateway::BuildError::LinkSecret),
                "{error}"
            ),
        }
    }
}

#[tokio::test]
async fn a_path_that_is_not_utf_8_names_no_stream_and_needs_a_key() {
    let (upstream, keys) = (upstream().await, Keys::new());
    let gateway = with_keys(&upstream, &keys).await;
    let id = create(&gateway, &keys.alice).await;
    for (method, path, code) in [
        ("GET", "/v1/streams/%FF".to_owned(), "stream_not_found"),
        ("DELETE", "/v1/streams/%FF".to_owned(), "stream_not_found"),
        (
            "GET",
            "/v1/streams/%FF/events".to_owned(),
            "stream_not_found",
        ),
        (
            "POST",
            "/v1/streams/%FF/cancel".to_owned(),
            "stream_not_found",
        ),
        (
            "POST",
            "/v1/streams/%FF/links".to_owned(),
            "stream_not_found",
        ),
        (
            "GET",
            "/v1/streams/%FF/choices/0".to_owned(),
            "stream_not_found",
        ),
        (
            "GET",
            format!("/v1/streams/{id}/choices/%FF"),
            "choice_not_found",
        ),
        (
            "DELETE",
            format!("/v1/streams/{id}/choices/%FF"),
            "choice_not_found",
        ),
    ] {
        let request = || gateway.method(method.parse().unwrap(), &path);
        let response = send(request()).await;
        assert_eq!(response.status(), 401, "{method} {path}");
        let response = send(request().bearer_auth(keys.alice.key())).await;
        assert_eq!(response.status(), 404, "{method} {path}");
        assert_eq!(error_code(response).await, code, "{method} {path}");
    }
}
