//! Section 6: fan-out.

mod answers;
mod connections;
mod counted;
mod cut;
mod early_cancel;
mod failures;
mod held;
mod silence;

use serde_json::{Value, json};

use crate::support::{
    Json, Reader, Seen, Step, Upstream, chunk, eventually, finish, json_body, request, send, soon,
    sse, start, stream_of,
};

const REFUSED: &str = r#"{"error":{"message":"Only `n=1` is supported","param":"n"}}"#;

/// A provider that gives one choice for each request.
fn one_choice(seen: &Seen, ordinal: usize) -> Vec<Step> {
    let usage = r#"{"id":"x","choices":[],"usage":{"prompt_tokens":2,"total_tokens":3}}"#;
    let mut events = vec![
        chunk(0, &format!("a{}", seen.json()["seed"])).replace("c1", &format!("c{ordinal}")),
        finish(0),
    ];
    if seen.json()["stream_options"]["include_usage"] == json!(true) {
        events.push(usage.to_owned());
    }
    events.push("[DONE]".to_owned());
    stream_of(&events)
}

fn refuses_n(seen: &Seen, ordinal: usize) -> Vec<Step> {
    if seen.json().get("n").is_some() {
        return json_body(400, REFUSED);
    }
    one_choice(seen, ordinal)
}

const BODY: &str =
    r#"{"model":"m","n":3,"seed":5,"stream":true,"stream_options":{"include_usage":true}}"#;

/// The texts by index, and the other events.
fn by_choice(events: &[crate::support::Event]) -> Vec<(u64, String)> {
    let mut texts: Vec<_> = events
        .iter()
        .filter(|event| !event.text().is_empty())
        .map(|event| {
            (
                event.json()["choices"][0]["index"].as_u64().unwrap(),
                event.text(),
            )
        })
        .collect();
    texts.sort();
    texts
}

#[tokio::test]
async fn always_sends_one_request_for_each_choice() {
    let upstream = Upstream::script(one_choice).await;
    let gateway = start(&upstream).await;
    let post = gateway.post(BODY).header("x-stream-fan-out", "always");
    let mut reader = Reader::new(send(post).await);
    let events = reader.rest().await;
    let seen = upstream.seen();
    assert_eq!(seen.len(), 3);
    let mut seeds: Vec<_> = seen
        .iter()
        .map(|seen| seen.json()["seed"].as_u64().unwrap())
        .collect();
    seeds.sort_unstable();
    assert_eq!(seeds, [5, 6, 7]);
    assert!(seen.iter().all(|seen| seen.json().get("n").is_none()));
    let expected = [
        (0, "a5".to_owned()),
        (1, "a6".to_owned()),
        (2, "a7".to_owned()),
    ];
    assert_eq!(by_choice(&events), expected);
    let ids: std::collections::BTreeSet<_> = events
        .iter()
        .filter(|event| !event.text().is_empty())
        .map(|event| event.json()["id"].to_string())
        .collect();
    assert_eq!(ids.len(), 1, "the id of the first");
    let last = &events[events.len() - 2];
    assert_eq!(last.json()["choices"], json!([]));
    assert_eq!(
        last.json()["usage"],
        json!({"prompt_tokens": 6, "total_tokens": 9})
    );
    assert_eq!(events.last().unwrap().data, "[DONE]");
    assert_eq!(reader.text.matches("usage").count(), 1);
    let id = reader.header("x-stream-id").unwrap().to_owned();
    assert_eq!(gateway.ended(&id).await["fan_out"], true);
    let choice = gateway
        .view(&format!("/v1/streams/{id}/choices/2"))
        .await
        .rest()
        .await;
    assert_eq!(choice[0].text(), "a7");
}

#[tokio::test]
async fn usage_is_added_only_if_the_client_asked_for_it() {
    let upstream = Upstream::script(one_choice).await;
    let gateway = start(&upstream).await;
    let body = r#"{"model":"m","n":2,"stream":true}"#;
    let mut reader =
        Reader::new(send(gateway.post(body).header("x-stream-fan-out", "always")).await);
    reader.rest().await;
    assert!(!reader.text.contains("usage"), "{}", reader.text);
}

#[tokio::test]
async fn auto_falls_back_if_the_provider_refuses_n_and_remembers_the_model() {
    let upstream = Upstream::script(refuses_n).await;
    let gateway = start(&upstream).await;
    for requests in [4, 7] {
        let mut reader = Reader::new(send(gateway.post(BODY)).await);
        assert_eq!(by_choice(&reader.rest().await).len(), 3);
        assert_eq!(
            upstream.seen().len(),
            requests,
            "the second time n is not tried"
        );
    }
    assert!(
        gateway.metric(
            "unbraid_streams_started_total{endpoint=\"/v1/chat/completions\",fan_out=\"true\"}"
        ) > 0.0
    );
}

#[tokio::test]
async fn a_model_that_allows_fewer_choices_is_asked_with_n_again() {
    const TOO_MANY: &str = r#"{"error":{"message":"n must be less than or equal to 2"}}"#;
    for is_stream in [true, false] {
        let upstream = Upstream::script(|seen, ordinal| match seen.json()["n"].as_u64() {
            Some(2) => stream_of(&[chunk(0, "a"), chunk(1, "b"), finish(0), finish(1)]),
            Some(_) => json_body(400, TOO_MANY),
            None => one_choice(seen, ordinal),
        })
        .await;
        let gateway = start(&upstream).await;
        let first = json!({"model": "m", "n": 3, "stream": is_stream}).to_string();
        send(gateway.post(first)).await.bytes().await.unwrap();
        assert_eq!(upstream.seen().len(), 4);
        let fewer = json!({"model": "m", "n": 2, "stream": true}).to_string();
        Reader::new(send(gateway.post(fewer)).await).rest().await;
        assert_eq!(upstream.seen().len(), 5);
        assert_eq!(upstream.seen()[4].json()["n"], 2);
    }
}

#[tokio::test]
async fn auto_completes_the_answer_if_the_provider_ignores_n() {
    let upstream = Upstream::script(one_choice).await;
    let gateway = start(&upstream).await;
    let mut reader = Reader::new(send(gateway.post(BODY)).await);
    let events = reader.rest().await;
    assert_eq!(by_choice(&events).len(), 3);
    assert_eq!(
        events.iter().filter(|event| event.data == "[DONE]").count(),
        1
    );
    assert_eq!(reader.text.matches("usage").count(), 1, "{}", reader.text);
    assert_eq!(
        upstream.seen()[0].body,
        BODY.as_bytes(),
        "first the request itself"
    );
    let id = reader.header("x-stream-id").unwrap().to_owned();
    assert_eq!(gateway.ended(&id).await["fan_out"], true);
}

/// The choices of the first answer have other indices than with `n`, so only the next request has what it asks for.
#[tokio::test]
async fn auto_remembers_a_model_that_ignores_n_for_a_list_of_prompts() {
    let text = |index: u32, text: &str| {
        json!({"choices": [{"index": index, "text": text, "finish_reason": "stop"}]}).to_string()
    };
    let upstream = Upstream::script(move |seen, _| {
        let prompts = match seen.json()["prompt"].clone() {
            Value::Array(prompts) => prompts,
            prompt => vec![prompt],
        };
        let chunks = (0..).zip(&prompts);
        let chunks = chunks.map(|(index, prompt)| text(index, prompt.as_str().unwrap()));
        stream_of(&chunks.chain(["[DONE]".to_owned()]).collect::<Vec<_>>())
    })
    .await;
    let gateway = start(&upstream).await;
    let post = async || {
        let body = r#"{"model":"m","prompt":["a","b"],"n":2,"stream":true}"#;
        let mut reader = Reader::new(send(gateway.post_to("/v1/completions", body)).await);
        let events = reader.rest().await;
        let texts = events.iter().filter_map(|event| {
            let json: Value = serde_json::from_str(&event.data).ok()?;
            let choice = json["choices"].get(0)?;
            Some((
                choice["index"].as_u64()?,
                choice["text"].as_str()?.to_owned(),
            ))
        });
        let mut texts: Vec<_> = texts.collect();
        texts.sort_unstable();
        (texts, reader.header("x-stream-id").unwrap().to_owned())
    };
    let (texts, id) = post().await;
    assert_eq!(texts, [(0, "a".to_owned()), (1, "b".to_owned())]);
    let status = gateway.ended(&id).await;
    assert_eq!(status["choices"][1]["end"], "finished");
    // A choice that never appeared has not finished.
    assert_eq!(status["choices"][3]["end"], "done_without_finish");
    let path = format!("/v1/streams/{id}/choices/3?stream=false");
    let whole = send(gateway.get(&path)).await.value().await;
    assert_eq!(whole["unbraid"]["end"], "done_without_finish");
    let texts: Vec<_> = post().await.0.into_iter().map(|(_, text)| text).collect();
    assert_eq!(texts, ["a", "a", "b", "b"]);
}

#[tokio::test]
async fn auto_leaves_the_answer_alone_if_the_provider_supports_n() {
    let events = [
        chunk(0, "a"),
        chunk(1, "b"),
        finish(0),
        finish(1),
        r#"{"choices":[],"usage":{"total_tokens":1}}"#.into(),
        "[DONE]".into(),
    ];
    let upstream = Upstream::steps(stream_of(&events)).await;
    let gateway = start(&upstream).await;
    let (_, mut post) = gateway.create(2).await;
    let data: Vec<_> = post
        .rest()
        .await
        .into_iter()
        .map(|event| event.data)
        .collect();
    assert_eq!(data, events);
    assert_eq!(upstream.seen().len(), 1);
}

#[tokio::test]
async fn native_and_n_of_1_are_never_fanned_out() {
    let upstream = Upstream::script(refuses_n).await;
    let gateway = start(&upstream).await;
    let response = send(gateway.post(BODY).header("x-stream-fan-out", "native")).await;
    assert_eq!(response.status(), 400);
    assert_eq!(response.text().await.unwrap(), REFUSED);
    let body = r#"{"model":"m","stream":true,"n":1}"#;
    let response = send(gateway.post(body).header("x-stream-fan-out", "always")).await;
    assert_eq!(response.status(), 400, "the request itself was sent");
}

#[tokio::test]
async fn without_stream_the_answer_of_a_fan_out_is_the_aggregate() {
    let upstream = Upstream::script(|seen, ordinal| {
        if seen.json().get("n").is_some() {
            json_body(400, REFUSED)
        } else {
            one_choice(seen, ordinal)
        }
    })
    .await;
    let gateway = start(&upstream).await;
    let response = send(gateway.post(r#"{"model":"m","n":2,"seed":1}"#)).await;
    assert!(response.headers().contains_key("x-stream-id"));
    let body: Value = response.value().await;
    assert_eq!(body["choices"][1]["message"]["content"], "a2");
    assert_eq!(body["usage"]["total_tokens"], 6);
}

#[tokio::test]
async fn a_whole_answer_with_too_few_choices_is_completed() {
    let whole = r#"{"id":"w","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"first"},"finish_reason":"stop"}],"usage":{"total_tokens":1}}"#;
    let upstream = Upstream::script(move |seen, ordinal| {
        if seen.json().get("n").is_some() {
            json_body(200, whole)
        } else {
            one_choice(seen, ordinal)
        }
    })
    .await;
    let gateway = start(&upstream).await;
    let body: Value = send(gateway.post(r#"{"model":"m","n":2,"seed":1}"#))
        .await
        .value()
        .await;
    assert_eq!(body["choices"][0]["message"]["content"], "first");
    assert_eq!(body["choices"][1]["message"]["content"], "a2");
    assert_eq!(body["usage"]["total_tokens"], 4);
}

#[tokio::test]
async fn cancelling_a_choice_closes_its_connection() {
    let upstream = Upstream::script(|_, _| {
        vec![
            sse(),
            Step::Send(format!("data: {}\n\n", chunk(0, "a"))),
            Step::Hang,
        ]
    })
    .await;
    let gateway = start(&upstream).await;
    let response = send(
        gateway
            .post(request(2))
            .header("x-stream-fan-out", "always"),
    )
    .await;
    let id = response.headers()["x-stream-id"]
        .to_str()
        .unwrap()
        .to_owned();
    let mut post = Reader::new(response);
    post.until("\"index\":1").await.until("\"index\":0").await;
    let path = format!("/v1/streams/{id}/choices/1");
    let response = send(gateway.method("DELETE".parse().unwrap(), &path)).await;
    let body: Value = response.value().await;
    assert_eq!(
        (&body["end"], &body["upstream"]),
        (&json!("cancelled"), &json!("closed"))
    );
    let response = send(gateway.method("DELETE".parse().unwrap(), &path)).await;
    assert_eq!(response.value().await, body, "nothing changes");
    eventually("its connection is closed", async || upstream.closed() == 1).await;
    assert_eq!(gateway.status(&id).await["state"], "running");
}

#[tokio::test]
async fn a_choice_that_was_cancelled_before_it_appeared_says_nothing_about_the_model() {
    let gate = std::sync::Arc::new(tokio::sync::Semaphore::new(0));
    let held = std::sync::Arc::clone(&gate);
    let data = |event: &str| Step::Send(format!("data: {event}\n\n"));
    let upstream = Upstream::script(move |_, _| {
        let mut steps = vec![sse(), data(&chunk(0, "a")), Step::Gate(held.clone())];
        steps.extend([chunk(1, "x"), finish(0), finish(1), "[DONE]".into()].map(|e| data(&e)));
        steps.push(Step::End);
        steps
    })
    .await;
    let gateway = start(&upstream).await;
    for (cancelled, requests) in [(true, 1), (false, 2)] {
        let (id, mut post) = gateway.create(2).await;
        post.until("\"a\"").await;
        if cancelled {
            let path = format!("/v1/streams/{id}/choices/1");
            let response = send(gateway.method("DELETE".parse().unwrap(), &path)).await;
            assert_eq!(response.status(), 200);
        }
        gate.add_permits(1);
        assert_eq!(post.rest().await.last().unwrap().data, "[DONE]");
        assert_eq!(gateway.ended(&id).await["fan_out"], false);
        assert_eq!(upstream.seen().len(), requests, "one request for each");
    }
    assert!(upstream.seen().iter().all(|seen| seen.json()["n"] == 2));
}

#[tokio::test]
async fn a_model_is_remembered_only_if_single_requests_succeed() {
    for stream in [true, false] {
        let upstream = Upstream::script(|seen, ordinal| match ordinal {
            0..4 => json_body(400, r#"{"error":{"message":"a field beside n is wrong"}}"#),
            _ => refuses_n(seen, ordinal),
        })
        .await;
        let gateway = start(&upstream).await;
        let body = format!(r#"{{"model":"m","n":3,"seed":5,"stream":{stream}}}"#);
        assert_eq!(send(gateway.post(body.clone())).await.status(), 400);
        assert_eq!(upstream.seen().len(), 4);
        for requests in [8, 11] {
            let response = send(gateway.post(body.clone())).await;
            assert_eq!(response.status(), 200);
            soon(response.bytes()).await.unwrap().unwrap();
            assert_eq!(upstream.seen().len(), requests, "it is remembered now");
        }
        assert_eq!(upstream.seen()[4].json()["n"], 3, "n was tried again");
    }
}

#[tokio::test]
async fn a_refusal_of_n_after_202_shows_in_the_status() {
    let upstream = Upstream::script(refuses_n).await;
    let gateway = start(&upstream).await;
    let response = send(gateway.post(BODY).header("prefer", "respond-async")).await;
    let status: Value = response.value().await;
    let status = gateway.ended(status["id"].as_str().unwrap()).await;
    assert_eq!(
        (&status["end"], &status["fan_out"]),
        (&json!("finished"), &json!(true))
    );
}
