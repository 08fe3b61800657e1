//! Address, headers and body of a request to each provider.

use serde_json::{Value, json};
use unbraid_http::{HttpError, Provider, Request, RequestError};

use super::{OTHERS, answer, builder, client, question};
use crate::server::Server;

/// Sends a request to a base URL with this path, and returns the address and the body that the server received.
async fn sent(provider: Provider, path: &str, request: &Request) -> (String, Value) {
    let server = Server::start(move |_| answer(provider, "Hi")).await;
    let base = format!("http://{}{path}", server.address());
    let client = builder(provider, &server).base_url(base).build().unwrap();
    drop(client.send(request).await.unwrap());
    let [seen] = server.requests().try_into().unwrap();
    let address = seen.uri().path_and_query().unwrap().to_string();
    (address, serde_json::from_slice(seen.body()).unwrap())
}

#[tokio::test]
async fn each_provider_has_its_own_address() {
    let model = |model: &str| Request::chat(model).user("Hello?");
    let gemini = "/v1beta/models/m:streamGenerateContent?alt=sse";
    let vertex = "/v1/projects/p/locations/l/publishers/google";
    for (provider, base, request, expected) in [
        (Provider::Responses, "/v1", model("m"), "/v1/responses"),
        (
            Provider::Responses,
            "/openai/v1/",
            model("m"),
            "/openai/v1/responses",
        ),
        (Provider::Anthropic, "", model("m"), "/v1/messages"),
        (Provider::Anthropic, "/v1", model("m"), "/v1/messages"),
        (
            Provider::Anthropic,
            "/anthropic/",
            model("m"),
            "/anthropic/v1/messages",
        ),
        (
            Provider::Anthropic,
            "/a?b=c",
            model("m"),
            "/a/v1/messages?b=c",
        ),
        (Provider::Gemini, "", model("m"), gemini),
        (Provider::Gemini, "/v1beta/", model("m"), gemini),
        (Provider::Gemini, "", model("models/m"), gemini),
        (
            Provider::Gemini,
            "/v1?key=k",
            model("m"),
            "/v1/models/m:streamGenerateContent?key=k&alt=sse",
        ),
        (
            Provider::Gemini,
            "",
            model("tunedModels/t"),
            "/v1beta/tunedModels/t:streamGenerateContent?alt=sse",
        ),
        (
            Provider::Gemini,
            "",
            model("../a?b#c d"),
            "/v1beta/a%3Fb%23c%20d:streamGenerateContent?alt=sse",
        ),
        (
            Provider::Gemini,
            vertex,
            model("m"),
            "/v1/projects/p/locations/l/publishers/google/models/m:streamGenerateContent?alt=sse",
        ),
        (Provider::Ollama, "", model("m"), "/api/chat"),
        (
            Provider::Ollama,
            "/proxy/api/",
            model("m"),
            "/proxy/api/chat",
        ),
        (Provider::Cohere, "", model("m"), "/v2/chat"),
        (Provider::Cohere, "/v2", model("m"), "/v2/chat"),
    ] {
        let (address, _) = sent(provider, base, &request).await;
        assert_eq!(address, expected, "{provider} {base}");
    }
    let generate = Request::native(json!({ "model": "m", "prompt": "Once" })).unwrap();
    let (address, _) = sent(Provider::Ollama, "", &generate).await;
    assert_eq!(address, "/api/generate");
}

#[tokio::test]
async fn each_provider_has_its_own_headers() {
    for (provider, key, accept) in [
        (
            Provider::Responses,
            ("authorization", "Bearer a-secret-key"),
            "text/event-stream",
        ),
        (
            Provider::Anthropic,
            ("x-api-key", "a-secret-key"),
            "text/event-stream",
        ),
        (
            Provider::Gemini,
            ("x-goog-api-key", "a-secret-key"),
            "text/event-stream",
        ),
        (
            Provider::Ollama,
            ("authorization", "Bearer a-secret-key"),
            "application/x-ndjson",
        ),
        (
            Provider::Cohere,
            ("authorization", "Bearer a-secret-key"),
            "text/event-stream",
        ),
    ] {
        let server = Server::start(move |_| answer(provider, "Hi")).await;
        let with_key = builder(provider, &server).api_key("a-secret-key\n");
        drop(with_key.build().unwrap().send(&question()).await.unwrap());
        drop(client(provider, &server).send(&question()).await.unwrap());
        let [seen, without] = server.requests().try_into().unwrap();
        for name in ["authorization", "x-api-key", "x-goog-api-key"] {
            let expected = (name == key.0).then_some(key.1);
            let found = seen
                .headers()
                .get(name)
                .map(|value| value.to_str().unwrap());
            assert_eq!(found, expected, "{provider}");
            assert!(!without.headers().contains_key(name), "{provider}");
        }
        assert_eq!(seen.headers()["accept"], accept);
        assert_eq!(seen.headers()["content-type"], "application/json");
        let version = seen.headers().get("anthropic-version");
        let expected = (provider == Provider::Anthropic).then_some("2023-06-01");
        assert_eq!(version.map(|value| value.to_str().unwrap()), expected);
    }
}

#[tokio::test]
async fn headers_of_the_provider_can_be_replaced() {
    let server = Server::start(|_| answer(Provider::Anthropic, "Hi")).await;
    let builder = builder(Provider::Anthropic, &server)
        .header("anthropic-version", "2024-01-01")
        .api_key("a-key")
        .key_header("authorization");
    drop(builder.build().unwrap().send(&question()).await.unwrap());
    let [seen] = server.requests().try_into().unwrap();
    assert_eq!(seen.headers()["anthropic-version"], "2024-01-01");
    assert_eq!(seen.headers()["authorization"], "a-key");
    assert!(!seen.headers().contains_key("x-api-key"));
}

#[tokio::test]
async fn a_native_request_is_sent_as_it_is() {
    let odd = json!({ "deep": [1, 2.5, null, false], "a": "\u{1F980}" });
    for provider in OTHERS {
        let native = json!({ "z": odd, "model": "m", "stream": false, "contents": [], "n": 1 });
        let (_, body) = sent(provider, "", &Request::native(native.clone()).unwrap()).await;
        let mut expected = native;
        if provider == Provider::Gemini {
            expected.as_object_mut().unwrap().shift_remove("model");
        } else {
            expected["stream"] = true.into();
        }
        assert_eq!(body.to_string(), expected.to_string(), "{provider}");
    }
    let (_, body) = sent(
        Provider::Cohere,
        "",
        &Request::native(json!({ "a": 1 })).unwrap(),
    )
    .await;
    assert_eq!(body, json!({ "a": 1, "stream": true }));
    let error = Request::native(json!("text")).unwrap_err();
    assert!(matches!(error, RequestError::NotAnObject { .. }), "{error}");
}

#[tokio::test]
async fn a_chat_completion_is_translated() {
    for provider in OTHERS {
        let request = question()
            .system("Be brief.")
            .max_tokens(9)
            .temperature(0.5);
        let request = Request::from_value(json!({
            "model": "m",
            "messages": [{ "role": "system", "content": "Be brief." }, { "role": "user", "content": "Hello?" }],
            "max_tokens": request.get("max_tokens"),
            "temperature": 0.5,
        }))
        .unwrap();
        let (_, body) = sent(provider, "", &request).await;
        assert_eq!(body, request.body_for(provider).unwrap());
        let text = body.to_string();
        assert!(
            text.contains("Be brief.") && text.contains("Hello?"),
            "{text}"
        );
    }
}

#[tokio::test]
async fn a_field_that_cannot_be_translated_is_not_sent() {
    for provider in OTHERS {
        let server = Server::start(move |_| answer(provider, "Hi")).await;
        let client = client(provider, &server);
        let request = question().field("logit_bias", json!({ "1": 2 }));
        let error = client.send(&request).await.unwrap_err();
        assert_eq!(error.as_str(), "request");
        let HttpError::Request(RequestError::Unsupported {
            field,
            provider: by,
            ..
        }) = error
        else {
            panic!("{error}")
        };
        assert_eq!((field.as_str(), by), ("logit_bias", provider));
        assert!(client.open(&request).await.is_err());
        let error = client.fan_out(&request, 2).closed().await.unwrap_err();
        assert!(
            matches!(HttpError::find_in(&error), Some(HttpError::Request(_))),
            "{error:?}"
        );
        assert_eq!(server.requests().len(), 0);
    }
}
