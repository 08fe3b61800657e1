//! What goes over the wire.

use async_openai::types::chat::{
    ChatCompletionRequestSystemMessage, ChatCompletionRequestUserMessage,
    CreateChatCompletionRequestArgs,
};
use hyper::{HeaderMap, Method};
use serde_json::{Value, json};
use unbraid_http::{BuildError, Client, ClientBuilder, Request};

use crate::{
    answers::two,
    server::{Server, two_choices_answer},
};

/// What one request looked like: its address, headers and body.
async fn sent(
    client: impl FnOnce(&Server) -> ClientBuilder,
    request: &Request,
) -> (String, HeaderMap, Value) {
    let server = Server::start(|_| two_choices_answer()).await;
    let client = client(&server).build().unwrap();
    client.send(request).await.unwrap();
    let [seen] = server.requests().try_into().unwrap();
    assert_eq!(seen.method(), Method::POST);
    let address = seen.uri().path_and_query().unwrap().to_string();
    let body = serde_json::from_slice(seen.body()).unwrap();
    (address, seen.headers().clone(), body)
}

fn at(server: &Server, path: &str) -> ClientBuilder {
    let base = server.base_url().replace("/v1", path);
    server.builder().base_url(base)
}

#[tokio::test]
async fn a_key_is_a_bearer() {
    let (address, headers, body) = sent(|server| server.builder().api_key(" sk-1\n"), &two()).await;
    assert_eq!(address, "/v1/chat/completions");
    assert_eq!(headers["authorization"], "Bearer sk-1");
    assert_eq!(headers["content-type"], "application/json");
    assert_eq!(headers["accept"], "text/event-stream");
    let agent = headers["user-agent"].to_str().unwrap();
    assert!(agent.starts_with("unbraid/"), "{agent}");
    assert_eq!(body, two().body());
    assert_eq!(body["stream"], true);
    assert_eq!(body["stream_options"]["include_usage"], true);
}

#[tokio::test]
async fn no_key_no_header() {
    for key in ["", " \n"] {
        let (_, headers, _) = sent(|server| server.builder().api_key(key), &two()).await;
        assert!(!headers.contains_key("authorization"));
    }
}

#[tokio::test]
async fn a_key_in_a_header_of_its_own() {
    let client = |server: &Server| server.builder().api_key("sk-1").key_header("API-Key");
    let (_, headers, _) = sent(client, &two()).await;
    assert_eq!(headers["api-key"], "sk-1");
    assert!(!headers.contains_key("authorization"));
}

#[tokio::test]
async fn azure_has_its_own_path_version_and_header() {
    let azure = |server: &Server| {
        let endpoint = format!("http://{}/", server.address());
        ClientBuilder::azure(endpoint, "my gpt/4", "2024-10-21")
            .api_key("k")
            .proxy_from_env(false)
    };
    let (address, headers, _) = sent(azure, &two()).await;
    assert_eq!(
        address,
        "/openai/deployments/my%20gpt%2F4/chat/completions?api-version=2024-10-21"
    );
    assert_eq!(headers["api-key"], "k");
    assert!(!headers.contains_key("authorization"));

    let token = |server: &Server| azure(server).header("Authorization", "Bearer token");
    let (_, headers, _) = sent(token, &two()).await;
    assert_eq!(headers["authorization"], "Bearer token");
}

#[tokio::test]
async fn addresses_are_put_together_with_care() {
    for (base, expected) in [
        ("/v1/", "/v1/chat/completions"),
        ("", "/chat/completions"),
        ("/", "/chat/completions"),
        ("/a/b%20c/", "/a/b%20c/chat/completions"),
        ("/v1?tenant=7", "/v1/chat/completions?tenant=7"),
    ] {
        let (address, ..) = sent(|server| at(server, base), &two()).await;
        assert_eq!(address, expected, "{base}");
    }
    let (address, _, body) = sent(Server::builder, &Request::text("m", "Once")).await;
    assert_eq!(address, "/v1/completions");
    assert_eq!(body["prompt"], "Once");
}

#[tokio::test]
async fn further_headers_go_along_and_go_before() {
    let client = |server: &Server| {
        server
            .builder()
            .api_key("sk-1")
            .header("OpenAI-Organization", "org")
            .header("user-agent", "mine")
    };
    let (_, headers, _) = sent(client, &two()).await;
    assert_eq!(headers["openai-organization"], "org");
    assert_eq!(headers["user-agent"], "mine");
    assert_eq!(headers["authorization"], "Bearer sk-1");
}

#[tokio::test]
async fn types_of_async_openai_go_out_as_they_are() {
    let theirs = CreateChatCompletionRequestArgs::default()
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
    let request = Request::from_serialize(&theirs).unwrap();
    let (_, _, body) = sent(Server::builder, &request).await;
    let own: Value = serde_json::from_str(&serde_json::to_string(&theirs).unwrap()).unwrap();
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
async fn a_value_goes_out_unchanged() {
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
fn settings_that_cannot_be_are_told_by_build() {
    let build = |builder: ClientBuilder| builder.build().map(drop).unwrap_err();
    for base in [
        "",
        "localhost:8000/v1",
        "/v1",
        "ftp://a/v1",
        "http://",
        "mailto:a@b",
    ] {
        let refused = build(Client::builder().base_url(base));
        assert!(
            matches!(refused, BuildError::Url { .. }),
            "{base}: {refused}"
        );
    }
    let refused = build(Client::builder().api_key("sk-a\nb"));
    assert!(matches!(refused, BuildError::Key), "{refused}");
    let refused = build(Client::builder().header("a b", "c"));
    assert_eq!(refused.to_string(), "header \"a b\" cannot be sent");
    let refused = build(Client::builder().header("a", "SECRET\n"));
    assert_eq!(refused.to_string(), "header \"a\" cannot be sent");
    let refused = build(Client::builder().api_key("k").key_header(""));
    assert_eq!(refused.to_string(), "header \"\" cannot be sent");
    let key = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
    for root in ["-----BEGIN CERTIFICATE-----\n?", key, "no certificate"] {
        let refused = build(Client::builder().root_certificate(root));
        assert!(matches!(refused, BuildError::Tls(_)), "{refused}");
    }
}

#[tokio::test]
async fn the_number_of_choices_is_known_to_the_stream() {
    // With `n` of 1 every index is read as 0, for servers that count tokens there.
    let tokens = [("a", 0), ("b", 1)]
        .map(|(text, index)| json!({ "choices": [{ "index": index, "text": text }] }).to_string());
    let body = tokens.map(|token| format!("data: {token}\n\n")).concat();
    let server = Server::start(move |_| {
        crate::server::full(200, "text/event-stream", format!("{body}data: [DONE]\n\n"))
    })
    .await;
    let one = Request::text("m", "x").n(1);
    let completions = server.client().send(&one).await.unwrap();
    assert_eq!(crate::answers::texts(&completions).await, ["ab"]);
    let completions = server.client().send(&one.n(2)).await.unwrap();
    assert_eq!(crate::answers::texts(&completions).await, ["a", "b"]);
}
