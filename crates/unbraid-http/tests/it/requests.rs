//! Requests as the server receives them.

use async_openai::types::chat::{
    ChatCompletionRequestSystemMessage, ChatCompletionRequestUserMessage,
    CreateChatCompletionRequestArgs,
};
use hyper::{HeaderMap, Method};
use serde_json::{Value, json};
use unbraid_http::{BuildError, Client, ClientBuilder, Request};

use crate::{
    responses::request,
    server::{Server, two_choices_reply},
};

/// Returns the address, the headers and the body of one request.
async fn sent(
    client: impl FnOnce(&Server) -> ClientBuilder,
    request: &Request,
) -> (String, HeaderMap, Value) {
    let server = Server::start(|_| two_choices_reply()).await;
    let client = client(&server).build().unwrap();
    drop(client.send(request).await.unwrap());
    let [seen] = server.requests().try_into().unwrap();
    assert_eq!(seen.method(), Method::POST);
    let address = seen.uri().path_and_query().unwrap().to_string();
    let body = serde_json::from_slice(seen.body()).unwrap();
    (address, seen.headers().clone(), body)
}

fn with_path(server: &Server, path: &str) -> ClientBuilder {
    let base = server.base_url().replace("/v1", path);
    server.builder().base_url(base)
}

#[tokio::test]
async fn a_key_is_sent_as_a_bearer_token() {
    let (address, headers, body) =
        sent(|server| server.builder().api_key(" sk-1\n"), &request()).await;
    assert_eq!(address, "/v1/chat/completions");
    assert_eq!(headers["authorization"], "Bearer sk-1");
    assert_eq!(headers["content-type"], "application/json");
    assert_eq!(headers["accept"], "text/event-stream");
    let agent = headers["user-agent"].to_str().unwrap();
    assert!(agent.starts_with("unbraid/"), "{agent}");
    assert_eq!(body, request().body());
    assert_eq!(body["stream"], true);
    assert_eq!(body["stream_options"]["include_usage"], true);
}

#[tokio::test]
async fn an_empty_key_is_not_sent() {
    for key in ["", " \n"] {
        let (_, headers, _) = sent(|server| server.builder().api_key(key), &request()).await;
        assert!(!headers.contains_key("authorization"));
    }
}

#[tokio::test]
async fn a_key_is_sent_in_a_header_of_its_own() {
    let client = |server: &Server| server.builder().api_key("sk-1").key_header("API-Key");
    let (_, headers, _) = sent(client, &request()).await;
    assert_eq!(headers["api-key"], "sk-1");
    assert!(!headers.contains_key("authorization"));
}

#[tokio::test]
async fn a_request_to_azure_has_its_path_version_and_header() {
    let azure = |server: &Server| {
        let endpoint = format!("http://{}/", server.address());
        ClientBuilder::azure(endpoint, "my gpt/4", "2024-10-21")
            .api_key("k")
            .proxy_from_env(false)
    };
    let (address, headers, _) = sent(azure, &request()).await;
    assert_eq!(
        address,
        "/openai/deployments/my%20gpt%2F4/chat/completions?api-version=2024-10-21"
    );
    assert_eq!(headers["api-key"], "k");
    assert!(!headers.contains_key("authorization"));

    let token = |server: &Server| azure(server).header("Authorization", "Bearer token");
    let (_, headers, _) = sent(token, &request()).await;
    assert_eq!(headers["authorization"], "Bearer token");
}

#[tokio::test]
async fn the_path_is_appended_to_every_base_url() {
    for (base, expected) in [
        ("/v1/", "/v1/chat/completions"),
        ("", "/chat/completions"),
        ("/", "/chat/completions"),
        ("/a/b%20c/", "/a/b%20c/chat/completions"),
        ("/v1?tenant=7", "/v1/chat/completions?tenant=7"),
    ] {
        let (address, ..) = sent(|server| with_path(server, base), &request()).await;
        assert_eq!(address, expected, "{base}");
    }
    let (address, _, body) = sent(Server::builder, &Request::text("m", "Once")).await;
    assert_eq!(address, "/v1/completions");
    assert_eq!(body["prompt"], "Once");
}

#[tokio::test]
async fn additional_headers_are_sent_and_take_precedence() {
    let client = |server: &Server| {
        server
            .builder()
            .api_key("sk-1")
            .header("OpenAI-Organization", "org")
            .header("user-agent", "mine")
    };
    let (_, headers, _) = sent(client, &request()).await;
    assert_eq!(headers["openai-organization"], "org");
    assert_eq!(headers["user-agent"], "mine");
    assert_eq!(headers["authorization"], "Bearer sk-1");
}

#[tokio::test]
async fn types_of_async_openai_are_sent_unchanged() {
    let external = CreateChatCompletionRequestArgs::default()
        .model("gpt-4o-mini")
        .n(3)
        .temperature(0.7_f32)
        .max_completion_tokens(64_u32)
        .messages([
            ChatCompletionRequestSystemMessage::from("Be brief.").into(),
            ChatCompletionRequestUserMessage::from("Hello").into(),
        ])
        .build()
        .unwrap();
    let request = Request::from_serialize(&external).unwrap();
    let (_, _, body) = sent(Server::builder, &request).await;
    let own: Value = serde_json::from_str(&serde_json::to_string(&external).unwrap()).unwrap();
    for (name, value) in own.as_object().unwrap() {
        assert_eq!(&body[name], value, "{name}");
    }
    assert_eq!(body["temperature"].to_string(), "0.7");
    let further: Vec<&str> = body
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .filter(|name| own.get(name).is_none())
        .collect();
    assert_eq!(further, ["stream", "stream_options"]);
}

#[tokio::test]
async fn a_value_is_sent_unchanged() {
    let value = json!({
        "prompt": ["a", "b"],
        "model": "m",
        "guided_regex": "\u{1F980}\\d+",
        "extra": { "deep": [1, 2.5, null, false, 1e-9] },
        "stream": true,
        "stream_options": { "include_usage": false },
    });
    let request = Request::from_value(value.clone()).unwrap();
    let (address, _, body) = sent(Server::builder, &request).await;
    assert_eq!(address, "/v1/completions");
    assert_eq!(body.to_string(), value.to_string());
}

#[test]
fn build_rejects_invalid_configurations() {
    let build = |builder: ClientBuilder| builder.build().map(drop).unwrap_err();
    for base in [
        "",
        "localhost:8000/v1",
        "127.0.0.1:8000/v1",
        "/v1",
        "ftp://a/v1",
        "mailto:a@b",
    ] {
        let error = build(Client::builder().base_url(base));
        let expected = "the base URL cannot be used: it does not begin with http:// or https://";
        assert_eq!(error.to_string(), expected, "{base}");
    }
    let error = build(Client::builder().base_url("http://"));
    assert_eq!(error.to_string(), "the base URL cannot be used: empty host");
    let error = build(Client::builder().api_key("sk-a\nb"));
    assert!(matches!(error, BuildError::Key), "{error}");
    let error = build(Client::builder().header("a b", "c"));
    assert_eq!(error.to_string(), "header \"a b\" cannot be sent");
    let error = build(Client::builder().header("a", "SECRET\n"));
    assert_eq!(error.to_string(), "header \"a\" cannot be sent");
    let error = build(Client::builder().api_key("k").key_header(""));
    assert_eq!(error.to_string(), "header \"\" cannot be sent");
    let key = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
    for root in ["-----BEGIN CERTIFICATE-----\n?", key, "no certificate"] {
        let error = build(Client::builder().root_certificate(root));
        assert!(matches!(error, BuildError::Tls(_)), "{error}");
    }
}

#[tokio::test]
async fn the_stream_expects_the_requested_number_of_choices() {
    // With an `n` of 1 every index is read as 0, for servers that count tokens in it.
    let tokens = [("a", 0), ("b", 1)]
        .map(|(text, index)| json!({ "choices": [{ "index": index, "text": text }] }).to_string());
    let body = tokens.map(|token| format!("data: {token}\n\n")).concat();
    let server = Server::start(move |_| {
        crate::server::full(200, "text/event-stream", format!("{body}data: [DONE]\n\n"))
    })
    .await;
    let one = Request::text("m", "x").n(1);
    let completions = server.client().send(&one).await.unwrap();
    assert_eq!(crate::responses::texts(&completions).await, ["ab"]);
    let completions = server.client().send(&one.n(2)).await.unwrap();
    assert_eq!(crate::responses::texts(&completions).await, ["a", "b"]);
}
