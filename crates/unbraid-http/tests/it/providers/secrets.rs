//! The key of each provider is in no error and no output.

use serde_json::json;
use unbraid::StreamError;

use super::{OTHERS, builder, question};
use crate::server::{Server, full};

const KEY: &str = "sk-ant-0123456789-seen";

#[tokio::test]
async fn a_key_that_the_server_repeats_is_replaced() {
    for provider in OTHERS {
        for body in [
            json!({ "type": "error", "error": { "type": KEY, "message": format!("invalid: {KEY}") }, "request_id": KEY }),
            json!({ "error": { "code": KEY, "message": KEY, "status": KEY } }),
            json!({ "error": KEY }),
            json!({ "message": KEY, "id": KEY }),
        ] {
            let server = Server::start(move |_| {
                let mut reply = full(401, "application/json", body.to_string());
                reply
                    .headers_mut()
                    .insert("x-debug-trace-id", KEY.parse().unwrap());
                reply
            })
            .await;
            let builder = builder(provider, &server).api_key(KEY);
            assert!(!format!("{builder:?}").contains("seen"));
            let client = builder.build().unwrap();
            assert!(!format!("{client:?}").contains("seen"));
            let error = client.send(&question()).await.unwrap_err();
            let refused = error.status_error().unwrap();
            let printed = format!(
                "{error} {error:?} {:?} {:?} {:?} {:?} {}",
                refused.message(),
                refused.kind(),
                refused.code(),
                refused.request_id(),
                refused.body_head(),
            );
            assert!(!printed.contains("seen"), "{provider}: {printed}");
            assert!(printed.contains("[key]"), "{provider}: {printed}");
        }
    }
}

#[tokio::test]
async fn a_key_inside_a_stream_is_replaced() {
    for provider in OTHERS {
        let body = json!({ "type": "error", "error": { "type": "e", "message": KEY } });
        let body = format!("data: {body}\n\n");
        let server = Server::start(move |_| full(200, "text/event-stream", body.clone())).await;
        let client = builder(provider, &server).api_key(KEY).build().unwrap();
        for completions in [
            client.send(&question()).await.unwrap(),
            client.fan_out(&question(), 1),
        ] {
            let error = completions.closed().await.unwrap_err();
            let StreamError::Server(server) = &error else {
                panic!("{provider}: {error:?}")
            };
            let printed = format!("{error} {error:?} {:?} {}", server.message(), server.body());
            assert!(!printed.contains("seen"), "{provider}: {printed}");
            assert!(printed.contains("[key]"), "{provider}: {printed}");
        }
    }
}

#[tokio::test]
async fn the_query_of_the_address_is_a_secret() {
    let server =
        Server::start(|_| full(404, "text/plain", format!("no route for ?key={KEY}"))).await;
    let base = format!("http://{}/v1beta?key={KEY}", server.address());
    let builder = builder(unbraid_http::Provider::Gemini, &server).base_url(base);
    let error = builder
        .build()
        .unwrap()
        .send(&question())
        .await
        .unwrap_err();
    let message = error.status_error().unwrap().message().unwrap();
    assert_eq!(message, "no route for ?key=[key]");
    assert!(!format!("{error} {error:?}").contains("seen"));
}
