//! Section 9: the gateway as a library, below the path of an axum application with its own authentication.

use axum::{Router, extract::Request, middleware, response::Response};
use serde_json::json;
use tower_service::Service;
use unbraid_gateway::{Gateway, Principal};

use crate::support::{Upstream, chunk, finish, parse_events, request, stream_of};

/// The application's own authentication: a header names the user.
async fn authenticate(mut request: Request, next: middleware::Next) -> Response {
    let user = request.headers()["x-user"].to_str().unwrap().to_owned();
    request.extensions_mut().insert(Principal::new(user));
    next.run(request).await
}

fn call(
    app: &Router,
    method: &str,
    path: &str,
    user: &str,
    body: String,
) -> impl Future<Output = Response> {
    let request = http::Request::builder()
        .method(method)
        .uri(path)
        .header("x-user", user)
        .header("host", "app.example")
        .header("origin", "https://app.example")
        .header("content-type", "application/json")
        .body(axum::body::Body::from(body))
        .unwrap();
    let mut app = app.clone();
    async move { app.call(request).await.unwrap() }
}

async fn text(response: Response) -> String {
    let bytes = axum::body::to_bytes(response.into_body(), usize::MAX)
        .await
        .unwrap();
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[tokio::test]
async fn an_application_mounts_the_gateway_under_its_own_authentication() {
    let upstream = Upstream::steps(stream_of(&[chunk(0, "a"), finish(0), "[DONE]".into()])).await;
    let gateway = Gateway::builder(upstream.url())
        .public_path("/llm/")
        .build()
        .unwrap();
    let app = Router::new()
        .nest_service("/llm", gateway.service())
        .layer(middleware::from_fn(authenticate));
    let response = call(
        &app,
        "POST",
        "/llm/v1/chat/completions",
        "alice",
        request(1),
    )
    .await;
    assert_eq!(response.status(), 200);
    let id = response.headers()["x-stream-id"]
        .to_str()
        .unwrap()
        .to_owned();
    let link = response.headers()["link"].to_str().unwrap().to_owned();
    assert!(
        link.starts_with(&format!("</llm/v1/streams/{id}>")),
        "{link}"
    );
    let events = parse_events(&text(response).await);
    assert_eq!(events.last().unwrap().data, "[DONE]");
    let path = format!("/llm/v1/streams/{id}");
    let response = call(&app, "GET", &path, "alice", String::new()).await;
    assert_eq!(response.status(), 200);
    let status: serde_json::Value = serde_json::from_str(&text(response).await).unwrap();
    assert_eq!(status["url"], json!(path));
    let response = call(&app, "GET", &path, "bob", String::new()).await;
    assert_eq!(response.status(), 404);
}

#[tokio::test]
async fn the_credential_of_an_application_is_not_sent_upstream() {
    let upstream = Upstream::steps(stream_of(&["[DONE]"])).await;
    let gateway = Gateway::builder(upstream.url()).build().unwrap();
    let send = async |principal: Option<Principal>, method, path: &str| {
        let mut request = http::Request::builder()
            .method(method)
            .uri(path)
            .header("host", "localhost")
            .header("authorization", "Bearer credential")
            .header("content-type", "application/json")
            .body(axum::body::Body::from(request(1)))
            .unwrap();
        if let Some(principal) = principal {
            request.extensions_mut().insert(principal);
        }
        let response = gateway.service().call(request).await.unwrap();
        assert_eq!(response.status(), 200);
        upstream.seen().pop().unwrap()
    };
    for (method, path) in [("POST", "/v1/chat/completions"), ("GET", "/v1/models")] {
        let seen = send(Some(Principal::new("alice")), method, path).await;
        assert!(!seen.headers.contains_key("authorization"), "{path}");
        // Without such an application, and without keys, it is the provider's key.
        let seen = send(None, method, path).await;
        assert_eq!(seen.headers["authorization"], "Bearer credential", "{path}");
    }
}

#[test]
fn a_gateway_without_a_runtime_is_an_error() {
    let error = Gateway::builder("http://127.0.0.1:1/v1")
        .build()
        .unwrap_err();
    assert!(matches!(error, unbraid_gateway::BuildError::NoRuntime));
}
