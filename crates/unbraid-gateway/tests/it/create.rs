//! Section 3: creating a stream.

mod encodings;
mod live;

use serde_json::{Value, json};

use crate::support::{
    Json, Reader, Seen, Step, Upstream, chunk, eventually, finish, json_body, request, send, sse,
    start, start_with, stream_of,
};

fn two_choices() -> Vec<Step> {
    stream_of(&[
        chunk(1, "Hel"),
        chunk(0, "Hi"),
        chunk(1, "lo"),
        finish(0),
        finish(1),
        r#"{"choices":[],"usage":{"total_tokens":7}}"#.to_owned(),
        "[DONE]".to_owned(),
    ])
}

#[tokio::test]
async fn a_stream_has_the_upstreams_data_unchanged_with_ids_that_increase() {
    let upstream = Upstream::steps(two_choices()).await;
    let gateway = start(&upstream).await;
    let (id, mut post) = gateway.create(2).await;
    assert!(
        id.len() >= 22
            && id
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b))
    );
    assert_eq!(
        post.header("content-type"),
        Some("text/event-stream; charset=utf-8")
    );
    assert_eq!(post.header("cache-control"), Some("no-store"));
    assert_eq!(post.header("x-accel-buffering"), Some("no"));
    assert_eq!(
        post.header("link").unwrap(),
        format!(
            "</v1/streams/{id}>; rel=\"monitor\", </v1/streams/{id}/events>; rel=\"alternate\"; type=\"text/event-stream\""
        )
    );
    let events = post.rest().await;
    let data: Vec<_> = events.iter().map(|event| event.data.clone()).collect();
    assert_eq!(
        data,
        [
            chunk(1, "Hel"),
            chunk(0, "Hi"),
            chunk(1, "lo"),
            finish(0),
            finish(1),
            r#"{"choices":[],"usage":{"total_tokens":7}}"#.to_owned(),
            "[DONE]".to_owned()
        ]
    );
    let ids: Vec<_> = events.iter().map(|event| event.id.unwrap()).collect();
    assert!(ids.is_sorted_by(|a, b| a < b), "{ids:?}");
    assert!(
        post.text.starts_with("retry: 1000\nid: 1\ndata: {"),
        "{}",
        post.text
    );
    assert_eq!(post.text.matches("retry").count(), 1);
}

#[tokio::test]
async fn the_body_and_the_headers_reach_the_upstream_as_the_client_sent_them() {
    let upstream = Upstream::steps(two_choices()).await;
    let gateway = start(&upstream).await;
    let body = "{ \"stream\" : true,\n \"n\":2, \"x\":1.10, \"model\":\"m\" }";
    let post = gateway
        .post_to("/v1/chat/completions?api-version=1", body)
        .header("authorization", "Bearer mine")
        .header("cookie", "a=b")
        .header("accept", "application/json")
        .header("x-stainless-os", "Linux")
        .header("x-stream-orphan-after", "60")
        .header("accept-encoding", "gzip");
    Reader::new(send(post).await).rest().await;
    let seen: Seen = upstream.seen().remove(0);
    assert_eq!(
        (seen.method.as_str(), seen.target.as_str()),
        ("POST", "/v1/chat/completions?api-version=1")
    );
    assert_eq!(seen.body, body.as_bytes());
    assert_eq!(seen.headers["authorization"], "Bearer mine");
    assert_eq!(seen.headers["x-stainless-os"], "Linux");
    assert_eq!(seen.headers["accept"], "application/json");
    assert_eq!(seen.headers["host"], upstream.address.to_string());
    for name in ["cookie", "x-stream-orphan-after", "accept-encoding"] {
        assert!(!seen.headers.contains_key(name), "{name}");
    }
}

#[tokio::test]
async fn the_upstreams_key_takes_the_place_of_the_clients() {
    let upstream = Upstream::steps(two_choices()).await;
    let gateway = start_with(&upstream, |builder| builder.upstream_key("theirs\n")).await;
    let post = gateway
        .post(request(2))
        .header("authorization", "Bearer mine");
    Reader::new(send(post).await).rest().await;
    assert_eq!(upstream.seen()[0].headers["authorization"], "Bearer theirs");
}

#[tokio::test]
async fn a_refusal_is_passed_through_and_creates_no_stream() {
    let body = r#"{"error":{"message":"slow down","code":"rate_limit"}}"#;
    let upstream = Upstream::script(move |_, _| {
        let headers = [
            ("content-type", "application/json"),
            ("retry-after", "3"),
            ("x-request-id", "r1"),
            ("x-ratelimit-remaining-tokens", "0"),
            ("openai-version", "v"),
            ("set-cookie", "a=b"),
        ];
        let headers = headers
            .map(|(name, value)| (name, value.to_owned()))
            .to_vec();
        vec![Step::Head(429, headers), Step::Send(body.into()), Step::End]
    })
    .await;
    let gateway = start(&upstream).await;
    let response = send(gateway.post(request(1))).await;
    assert_eq!(response.status(), 429);
    for (name, value) in [
        ("retry-after", "3"),
        ("x-request-id", "r1"),
        ("x-ratelimit-remaining-tokens", "0"),
        ("openai-version", "v"),
    ] {
        assert_eq!(response.headers()[name], value);
    }
    assert!(!response.headers().contains_key("x-stream-id"));
    assert!(!response.headers().contains_key("set-cookie"));
    assert_eq!(response.text().await.unwrap(), body);
    assert_eq!(upstream.seen().len(), 1, "nothing is retried");
}

#[tokio::test]
async fn an_upstream_that_cannot_be_reached_is_502_and_one_that_is_silent_504() {
    let upstream = Upstream::steps(vec![Step::Hang]).await;
    let timeout = std::time::Duration::from_millis(100);
    let gateway = start_with(&upstream, |builder| builder.first_byte_timeout(timeout)).await;
    let response = send(gateway.post(request(1))).await;
    assert_eq!(response.status(), 504);
    assert_eq!(error_code(response).await, "upstream_timeout");
    eventually("the connection is closed", async || upstream.closed() == 1).await;
    let gone = Upstream::steps(Vec::new()).await;
    let gateway = start(&gone).await;
    drop(gone);
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    let response = send(gateway.post(request(1))).await;
    assert_eq!(response.status(), 502);
    assert_eq!(error_code(response).await, "upstream_unreachable");
}

/// It can be reached, so the operator would look for the wrong fault.
#[tokio::test]
async fn an_upstream_whose_head_is_not_one_of_http_is_502_and_not_unreachable() {
    let lengths = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n{}";
    let fields = "x: y\r\n".repeat(1000);
    let many = format!("HTTP/1.1 200 OK\r\n{fields}content-length: 2\r\n\r\n{{}}");
    for head in ["SSH-2.0-x\r\n\r\n", lengths, &many] {
        let upstream = Upstream::steps(vec![Step::Raw(head.to_owned())]).await;
        let gateway = start_with(&upstream, |builder| builder.retries(3)).await;
        let response = send(gateway.post(request(1))).await;
        assert_eq!(response.status(), 502, "{head}");
        assert_eq!(error_code(response).await, "upstream_invalid", "{head}");
        assert_eq!(upstream.seen().len(), 1, "the upstream may be at work");
    }
}

#[tokio::test]
async fn a_redirect_is_passed_through_and_never_followed() {
    let upstream = Upstream::steps(vec![
        Step::Head(307, vec![("location", "http://127.0.0.1:9/".into())]),
        Step::End,
    ])
    .await;
    let gateway = start(&upstream).await;
    let response = send(gateway.post(request(1))).await;
    assert_eq!(response.status(), 307);
    assert_eq!(upstream.seen().len(), 1);
}

#[tokio::test]
async fn whole_json_in_place_of_a_stream_is_passed_through() {
    let body = r#"{"object":"chat.completion","choices":[]}"#;
    let upstream = Upstream::steps(json_body(200, body)).await;
    let gateway = start(&upstream).await;
    let response = send(gateway.post(request(1))).await;
    assert!(!response.headers().contains_key("x-stream-id"));
    assert_eq!(response.headers()["content-type"], "application/json");
    assert_eq!(response.text().await.unwrap(), body);
}

#[tokio::test]
async fn an_answer_without_stream_is_the_upstreams_byte_for_byte() {
    let body = "{ \"choices\" : [ 1.10 ] }\n";
    let upstream = Upstream::steps(json_body(200, body)).await;
    let gateway = start(&upstream).await;
    let sent = r#"{"model":"m"}"#;
    let response = send(gateway.post(sent)).await;
    assert!(!response.headers().contains_key("x-stream-id"));
    assert_eq!(response.text().await.unwrap(), body);
    assert_eq!(upstream.seen()[0].body, sent.as_bytes());
}

#[tokio::test]
async fn replay_without_stream_answers_with_the_aggregate_of_a_stream() {
    let upstream = Upstream::steps(two_choices()).await;
    let gateway = start(&upstream).await;
    let post = gateway
        .post(r#"{"model":"m","n":2}"#)
        .header("x-stream-durability", "replay");
    let response = send(post).await;
    assert_eq!(response.status(), 200);
    let id = response.headers()["x-stream-id"]
        .to_str()
        .unwrap()
        .to_owned();
    let answer: Value = response.value().await;
    assert_eq!(answer["object"], "chat.completion");
    assert_eq!(answer["choices"][1]["message"]["content"], "Hello");
    assert_eq!(answer["choices"][0]["finish_reason"], "stop");
    assert_eq!(answer["usage"]["total_tokens"], 7);
    assert_eq!(upstream.seen()[0].json()["stream"], true);
    assert_eq!(gateway.status(&id).await["end"], "finished");
}

#[tokio::test]
async fn the_reasoning_of_an_aggregate_has_the_name_that_the_server_gives_it() {
    for name in ["reasoning_content", "reasoning"] {
        let thought = json!({ name: "Hm.", "content": null, "role": "assistant" });
        let upstream = Upstream::steps(stream_of(&[
            json!({ "choices": [{ "index": 0, "delta": thought }] }).to_string(),
            chunk(0, "Hi"),
            finish(0),
            "[DONE]".to_owned(),
        ]))
        .await;
        let gateway = start(&upstream).await;
        let post = gateway
            .post(r#"{"model":"m"}"#)
            .header("idempotency-key", name);
        let response = send(post).await;
        let id = response.headers()["x-stream-id"]
            .to_str()
            .unwrap()
            .to_owned();
        let answer: Value = response.value().await;
        let path = format!("/v1/streams/{id}/choices/0?stream=false");
        let choice: Value = send(gateway.get(&path)).await.value().await;
        for answer in [answer, choice] {
            let message = answer["choices"][0]["message"].as_object().unwrap();
            assert_eq!(message[name], "Hm.");
            let names = message.keys().filter(|key| key.starts_with("reasoning"));
            assert_eq!(names.count(), 1);
        }
    }
}

#[tokio::test]
async fn respond_async_answers_at_once_and_reports_a_refusal_in_the_status() {
    let upstream = Upstream::script(|_, ordinal| match ordinal {
        0 => {
            let mut steps = vec![Step::Sleep(std::time::Duration::from_millis(300))];
            steps.extend(two_choices());
            steps
        }
        _ => json_body(429, r#"{"error":{"message":"slow down","code":"rate"}}"#),
    })
    .await;
    let gateway = start(&upstream).await;
    let response = send(gateway.post(request(2)).header("prefer", "respond-async")).await;
    assert_eq!(response.status(), 202);
    assert_eq!(response.headers()["preference-applied"], "respond-async");
    let location = response.headers()["location"].to_str().unwrap().to_owned();
    let status: Value = response.value().await;
    assert_eq!(location, status["url"].as_str().unwrap());
    assert_eq!(
        (&status["state"], &status["object"]),
        (&json!("running"), &json!("stream"))
    );
    // An answer that has not begun has the fields of every other one.
    let so_far = send(gateway.get(&format!("{location}/events?stream=false"))).await;
    let so_far: Value = so_far.value().await;
    assert_eq!(
        (&so_far["id"], &so_far["model"], &so_far["created"]),
        (&json!(""), &json!("m"), &status["created"])
    );
    let events = gateway
        .view(&format!("{location}/events"))
        .await
        .rest()
        .await;
    assert_eq!(events.last().unwrap().data, "[DONE]");
    let response = send(gateway.post(request(1)).header("prefer", "respond-async")).await;
    let refused: Value = response.value().await;
    let refused = gateway.ended(refused["id"].as_str().unwrap()).await;
    assert_eq!(refused["end"], "refused");
    assert_eq!(
        (&refused["error"]["status"], &refused["error"]["code"]),
        (&json!(429), &json!("rate"))
    );
}

/// A request without `n` is one for a single choice: of its view the same is known from the start.
#[tokio::test]
async fn the_status_lists_the_choice_of_a_request_without_n_before_it_has_appeared() {
    let upstream = Upstream::steps(vec![Step::Hang]).await;
    let gateway = start(&upstream).await;
    for body in [
        r#"{"model":"m","stream":true,"n":1,"messages":[]}"#,
        r#"{"model":"m","stream":true,"messages":[]}"#,
        r#"{"model":"m","stream":true,"n":null,"messages":[]}"#,
    ] {
        let post = gateway.post(body).header("prefer", "respond-async");
        let status: Value = send(post).await.value().await;
        let url = format!("{}/choices/0", status["url"].as_str().unwrap());
        let choice = json!({"index": 0, "state": "running", "end": null, "finish_reason": null,
            "seq": 0, "url": url});
        assert_eq!(status["choices"], json!([choice]), "{body}");
        assert_eq!(
            gateway.view(&url).await.header("content-type").unwrap(),
            "text/event-stream; charset=utf-8"
        );
    }
}

#[tokio::test]
async fn text_completions_are_streams_too() {
    let event = r#"{"object":"text_completion","choices":[{"index":0,"text":"Hi","finish_reason":"stop"}]}"#;
    let upstream = Upstream::steps(stream_of(&[event, "[DONE]"])).await;
    let gateway = start(&upstream).await;
    let post = gateway.post_to(
        "/v1/completions",
        r#"{"model":"m","prompt":"a","stream":true}"#,
    );
    let mut reader = Reader::new(send(post).await);
    assert_eq!(reader.rest().await[0].data, event);
    assert_eq!(upstream.seen()[0].target, "/v1/completions");
    let post = gateway
        .post_to("/v1/completions", r#"{"model":"m","prompt":"a"}"#)
        .header("x-stream-durability", "replay");
    let answer: Value = send(post).await.value().await;
    assert_eq!(
        (&answer["object"], &answer["choices"][0]["text"]),
        (&json!("text_completion"), &json!("Hi"))
    );
}

#[tokio::test]
async fn event_names_are_passed_on_and_comments_and_ids_are_not() {
    let raw =
        ": hello\n\nevent: custom\nid: 99\nretry: 5\ndata: {\"a\":\ndata: 1}\n\ndata: [DONE]\n\n";
    let upstream = Upstream::steps(vec![sse(), Step::Send(raw.into()), Step::End]).await;
    let gateway = start(&upstream).await;
    let (_, mut post) = gateway.create(1).await;
    let events = post.rest().await;
    assert_eq!(events.len(), 2, "{}", post.text);
    assert_eq!(events[0].name.as_deref(), Some("custom"));
    assert_eq!(events[0].data, "{\"a\":\n1}");
    assert_eq!(events[0].id, Some(1));
}

#[tokio::test]
async fn errors_before_anything_is_sent_have_a_code() {
    let upstream = Upstream::steps(two_choices()).await;
    let gateway = start_with(&upstream, |builder| builder.max_n(4).max_body(100)).await;
    let long = format!(r#"{{"a":"{}"}}"#, "x".repeat(200));
    for (body, status, code) in [
        ("[]", 400, "invalid_json"),
        ("{\"a\":", 400, "invalid_json"),
        ("", 400, "invalid_json"),
        (r#"{"n":5}"#, 400, "n_too_large"),
        (long.as_str(), 413, "request_too_large"),
    ] {
        let response = send(gateway.post(body.to_owned())).await;
        assert_eq!(response.status(), status, "{body}");
        assert_eq!(error_code(response).await, code);
    }
    for content_type in ["text/plain", "application/jsonx", ""] {
        let other = gateway
            .http
            .post(gateway.url("/v1/chat/completions"))
            .body("{}");
        let response = send(other.header("content-type", content_type)).await;
        assert_eq!(response.status(), 415, "{content_type}");
    }
    assert_eq!(upstream.seen().len(), 0);
}

#[tokio::test]
async fn get_and_delete_never_start_a_generation() {
    let upstream = Upstream::steps(two_choices()).await;
    let gateway = start(&upstream).await;
    for method in ["GET", "HEAD", "DELETE", "PUT"] {
        let method = method.parse().unwrap();
        let response = send(
            gateway
                .method(method, "/v1/chat/completions")
                .body(request(1)),
        )
        .await;
        assert_eq!(response.status(), 405);
        assert_eq!(response.headers()["allow"], "POST");
    }
    assert_eq!(upstream.seen().len(), 0);
}

#[tokio::test]
async fn an_upstream_that_switches_to_another_protocol_is_invalid() {
    let head = Step::Head(
        101,
        vec![("upgrade", "x".into()), ("connection", "upgrade".into())],
    );
    let upstream = Upstream::steps(vec![head, Step::Hang]).await;
    let gateway = start(&upstream).await;
    for durability in ["live", "replay"] {
        let post = gateway
            .post(request(1))
            .header("x-stream-durability", durability);
        let response = send(post).await;
        assert_eq!(response.status(), 502);
        assert_eq!(error_code(response).await, "upstream_invalid");
    }
}

pub(crate) async fn error_code(response: reqwest::Response) -> String {
    let body: Value = response.value().await;
    let error = &body["error"];
    assert!(
        error["message"].is_string() && error["type"].is_string(),
        "{body}"
    );
    error["code"].as_str().unwrap().to_owned()
}
