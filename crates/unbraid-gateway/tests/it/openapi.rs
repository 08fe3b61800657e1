//! The description of the interface in `docs/openapi.json` agrees with the gateway.

use std::{collections::BTreeSet, fs, path::Path};

use reqwest::Method;
use serde_json::Value;

use crate::{
    create::error_code,
    support::{Json, TestGateway, Upstream, chunk, finish, send, start, stream_of},
};

fn description() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// The names of the fields that an object of this schema always has.
fn required(description: &Value, schema: &str) -> BTreeSet<String> {
    let names = description["components"]["schemas"][schema]["required"].as_array();
    names
        .unwrap()
        .iter()
        .map(|name| name.as_str().unwrap().to_owned())
        .collect()
}

fn keys(object: &Value) -> BTreeSet<String> {
    object.as_object().unwrap().keys().cloned().collect()
}

/// The methods of a path, as the header `Allow` lists them.
fn methods(operations: &Value) -> BTreeSet<String> {
    let mut methods: BTreeSet<String> = keys(operations)
        .into_iter()
        .filter(|key| key != "parameters")
        .map(|method| method.to_uppercase())
        .collect();
    if methods.contains("GET") {
        methods.insert("HEAD".into());
    }
    methods
}

async fn gateway() -> (Upstream, TestGateway) {
    let events = [chunk(0, "a"), chunk(1, "b"), finish(0), finish(1)];
    let upstream = Upstream::steps(stream_of(&events)).await;
    let gateway = start(&upstream).await;
    (upstream, gateway)
}

async fn check_path(gateway: &TestGateway, path: &str, allowed: &BTreeSet<String>) {
    for method in [
        Method::GET,
        Method::POST,
        Method::PUT,
        Method::PATCH,
        Method::DELETE,
    ] {
        let response = send(gateway.method(method.clone(), path)).await;
        if allowed.contains(method.as_str()) {
            assert_ne!(response.status(), 405, "{method} {path}");
            if response.status() == 404 {
                assert_ne!(error_code(response).await, "not_found", "{method} {path}");
            }
        } else {
            assert_eq!(response.status(), 405, "{method} {path}");
            let allow = response.headers()["allow"].to_str().unwrap();
            let allow: BTreeSet<String> = allow.split(", ").map(str::to_owned).collect();
            assert_eq!(&allow, allowed, "{method} {path}");
        }
    }
}

#[tokio::test]
async fn every_described_path_has_exactly_the_described_methods() {
    let (_upstream, gateway) = gateway().await;
    let description = description();
    for (path, operations) in description["paths"].as_object().unwrap() {
        let (id, _post) = gateway.create(1).await;
        let path = path
            .replace("{id}", &id)
            .replace("{choice}", "0")
            .replace("{model}", "m");
        check_path(&gateway, &path, &methods(operations)).await;
    }
}

#[tokio::test]
async fn the_described_objects_have_exactly_the_described_fields() {
    let (_upstream, gateway) = gateway().await;
    let description = description();
    let (id, _post) = gateway.create(2).await;

    let status = gateway.status(&id).await;
    assert_eq!(keys(&status), required(&description, "Stream"));
    assert_eq!(
        keys(&status["choices"][0]),
        required(&description, "Choice")
    );
    let links = gateway.method(Method::POST, &format!("/v1/streams/{id}/links"));
    let links: Value = send(links).await.value().await;
    assert_eq!(keys(&links), required(&description, "Links"));
    let choice = gateway.method(Method::DELETE, &format!("/v1/streams/{id}/choices/0"));
    let cancelled: Value = send(choice).await.value().await;
    assert!(keys(&cancelled).is_superset(&required(&description, "CancelledChoice")));
    let view = gateway.get(&format!("/v1/streams/{id}/events?stream=false"));
    let message: Value = send(view).await.value().await;
    assert!(keys(&message).is_superset(&required(&description, "Message")));
}

/// What a path answers with a status, with references followed.
fn described<'d>(description: &'d Value, path: &str, method: &str, status: u16) -> &'d Value {
    let answer = &description["paths"][path][method]["responses"][status.to_string()];
    match answer["$ref"].as_str() {
        Some(reference) => description.pointer(&reference[1..]).unwrap(),
        None => answer,
    }
}

#[tokio::test]
async fn errors_of_requests_are_described_with_their_codes() {
    const CHAT: &str = "/v1/chat/completions";
    const LINKS: &str = "/v1/streams/{id}/links";
    const EVENTS: &str = "/v1/streams/{id}/events";
    let (_upstream, gateway) = gateway().await;
    let description = description();
    let (id, _post) = gateway.create(1).await;
    let too_long = "x".repeat(5000);
    for (method, path, header, body, status, code) in [
        (
            "post",
            CHAT,
            ("content-type", "text/plain"),
            "{}",
            415,
            "unsupported_media_type",
        ),
        (
            "post",
            CHAT,
            ("idempotency-key", "a b"),
            "{}",
            400,
            "bad_idempotency_key",
        ),
        (
            "post",
            CHAT,
            ("x-stream-durability", "maybe"),
            "{}",
            400,
            "invalid_header",
        ),
        (
            "post",
            CHAT,
            ("last-event-id", "x"),
            "{}",
            400,
            "bad_cursor",
        ),
        ("post", LINKS, ("x-a", "b"), "[]", 400, "invalid_json"),
        (
            "post",
            LINKS,
            ("x-a", "b"),
            r#"{"scope":"x"}"#,
            400,
            "invalid_link_request",
        ),
        (
            "post",
            LINKS,
            ("x-a", "b"),
            &too_long,
            413,
            "request_too_large",
        ),
        ("get", EVENTS, ("last-event-id", "x"), "", 400, "bad_cursor"),
        (
            "get",
            EVENTS,
            ("accept", "text/html"),
            "",
            406,
            "not_acceptable",
        ),
        (
            "get",
            "/healthz",
            ("host", "a.example"),
            "",
            403,
            "host_not_allowed",
        ),
        (
            "get",
            "/",
            ("origin", "http://a.example"),
            "",
            403,
            "origin_not_allowed",
        ),
    ] {
        let verb = method.to_uppercase().parse().unwrap();
        let mut request = gateway.method(verb, &path.replace("{id}", &id));
        if !body.is_empty() {
            request = request
                .header("content-type", "application/json")
                .body(body.to_owned());
        }
        let mut request = request.build().unwrap();
        request
            .headers_mut()
            .insert(header.0, header.1.parse().unwrap());
        let response = reqwest::Client::new().execute(request).await.unwrap();
        assert_eq!(response.status(), status, "{path} {header:?}");
        assert_eq!(error_code(response).await, code);
        let answer = described(&description, path, method, status);
        let text = answer["description"].as_str().unwrap_or_default();
        assert!(
            text.contains(&format!("`{code}`")),
            "{path} {status}: {text}"
        );
    }
}

/// A cancel that the log has not confirmed yet.
#[test]
fn the_states_of_a_status_are_described() {
    let states = &description()["components"]["schemas"]["Stream"]["properties"]["state"]["enum"];
    assert_eq!(
        *states,
        serde_json::json!(["running", "cancelling", "ended"])
    );
}
