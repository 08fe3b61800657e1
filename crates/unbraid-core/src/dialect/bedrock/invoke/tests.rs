use serde_json::{Value, json};

use crate::{Config, Demux, Dialect};

/// The texts, reasons and prompt tokens of a body that is read as Bedrock's.
fn read(body: &Value) -> (Vec<String>, Vec<Option<String>>, Option<u64>) {
    let mut demux = Demux::new(Config::default().with_dialect(Dialect::Bedrock));
    demux.feed(body.to_string().as_bytes());
    demux.finish();
    let choices: Vec<_> = demux
        .choices()
        .map(|choice| choice.outcome().unwrap())
        .collect();
    let texts = choices.iter().map(|choice| choice.message.content.clone());
    let reasons = choices.iter().map(|choice| {
        let reason = choice.finish_reason.as_ref();
        reason.map(|reason| reason.as_str().to_owned())
    });
    let (texts, reasons) = (texts.collect(), reasons.collect());
    (texts, reasons, demux.usage().prompt_tokens)
}

#[test]
fn b10_the_answers_of_models_without_streaming_are_read() {
    let one = json!({ "text": "A", "stop_reason": "stop" });
    let generation = json!({ "text": "A", "finish_reason": "COMPLETE", "id": "g" });
    let result = json!({ "outputText": "A", "completionReason": "FINISH", "tokenCount": 2 });
    let rows = [
        (json!({ "outputs": [one] }), "stop", None),
        (
            json!({ "generations": [generation], "id": "i" }),
            "COMPLETE",
            None,
        ),
        (
            json!({ "completion": "A", "stop_reason": "max_tokens", "stop": null }),
            "max_tokens",
            None,
        ),
        (
            json!({ "text": "A", "generation_id": "g", "finish_reason": "COMPLETE" }),
            "COMPLETE",
            None,
        ),
        (
            json!({ "inputTextTokenCount": 3, "results": [result] }),
            "FINISH",
            Some(3),
        ),
        (
            json!({ "generation": "A", "prompt_token_count": 3, "generation_token_count": 2, "stop_reason": "stop" }),
            "stop",
            Some(3),
        ),
    ];
    for (body, reason, prompt) in rows {
        let expected = (vec!["A".to_owned()], vec![Some(reason.to_owned())], prompt);
        assert_eq!(read(&body), expected, "{body}");
    }
    let two = json!({ "outputs": [{ "text": "A" }, { "text": "B", "stop_reason": "length" }] });
    let expected = (
        vec!["A".to_owned(), "B".to_owned()],
        vec![None, Some("length".to_owned())],
        None,
    );
    assert_eq!(read(&two), expected);
}

#[test]
fn b10_a_value_without_the_fields_of_a_model_opens_no_choice() {
    for body in [
        json!({ "foo": 1 }),
        json!({ "results": "none" }),
        json!({ "text": "A" }),
    ] {
        assert_eq!(read(&body).0, Vec::<String>::new(), "{body}");
    }
}

#[test]
fn b10_decoded_chunks_of_a_stream_are_no_whole_answers() {
    let mut demux = Demux::new(Config::default().with_dialect(Dialect::Bedrock));
    for (text, reason) in [("A", Value::Null), ("B", Value::Null), ("", json!("stop"))] {
        let chunk = json!({ "outputs": [{ "text": text, "stop_reason": reason }] });
        demux.feed(format!("data: {chunk}\n\n").as_bytes());
    }
    demux.finish();
    let outcome = demux.choices().next().unwrap().outcome().unwrap();
    assert_eq!(outcome.message.content, "AB");
    assert_eq!(
        outcome
            .finish_reason
            .map(|r| r.as_str().to_owned())
            .as_deref(),
        Some("stop")
    );
}

/// A gateway that has decoded the chunks: some of the choices have ended with the first one.
#[test]
fn b10_a_decoded_chunk_in_which_a_choice_ends_is_not_the_whole_answer() {
    let values = [
        json!({ "outputs": [{ "text": "A", "stop_reason": "stop" }, { "text": "B", "stop_reason": null }] }),
        json!({ "outputs": [{ "text": "", "stop_reason": null }, { "text": "C", "stop_reason": "length" }] }),
        json!({ "outputs": [{ "text": "" }], "amazon-bedrock-invocationMetrics": { "inputTokenCount": 3, "outputTokenCount": 3 } }),
    ];
    let mut demux = Demux::new(Config::default().with_dialect(Dialect::Bedrock));
    for value in values {
        demux.feed(format!("data: {value}\n\n").as_bytes());
    }
    demux.finish();
    let outcomes = demux.choices().map(|choice| choice.outcome().unwrap());
    let texts: Vec<_> = outcomes
        .map(|outcome| (outcome.message.content, outcome.end))
        .collect();
    let finished = |reason: &str| crate::ChoiceEnd::Finished(reason.into());
    assert_eq!(
        texts,
        [
            ("A".to_owned(), finished("stop")),
            ("BC".to_owned(), finished("length"))
        ]
    );
    assert_eq!(demux.usage().prompt_tokens, Some(3));
}

/// The body that the command writes of an answer that was interrupted.
#[test]
fn b12_a_body_of_converse_may_lack_its_reason() {
    let message = json!({ "role": "assistant", "content": [{ "text": "A" }] });
    let body = json!({ "output": { "message": message }, "stopReason": null, "usage": null });
    let mut demux = Demux::new(Config::default());
    demux.feed(body.to_string().as_bytes());
    demux.finish();
    let outcomes = demux.choices().map(|choice| choice.outcome().unwrap());
    let texts: Vec<_> = outcomes
        .map(|outcome| (outcome.message.content, outcome.finish_reason))
        .collect();
    assert_eq!(texts, [("A".to_owned(), None)]);
}

/// The texts and reasons of values that stand in events, as a gateway sends what it has decoded.
fn read_events(values: &[Value]) -> (Demux, Vec<(String, Option<String>)>) {
    let mut demux = Demux::new(Config::default().with_dialect(Dialect::Bedrock));
    for value in values {
        demux.feed(format!("data: {value}\n\n").as_bytes());
    }
    demux.finish();
    let outcomes = demux.choices().map(|choice| choice.outcome().unwrap());
    let outcomes = outcomes.map(|outcome| {
        let reason = outcome
            .finish_reason
            .map(|reason| reason.as_str().to_owned());
        (outcome.message.content, reason)
    });
    let outcomes = outcomes.collect();
    (demux, outcomes)
}

#[test]
fn b10_d05_decoded_chunks_of_every_model_are_read_where_the_dialect_is_given() {
    let metrics = json!({ "inputTokenCount": 3, "outputTokenCount": 2 });
    let titan = |text: &str, reason: Value| json!({ "outputText": text, "index": 0, "completionReason": reason, "inputTextTokenCount": 3 });
    let command = |text: &str, end: bool| json!({ "text": text, "is_finished": end, "finish_reason": end.then_some("COMPLETE") });
    let chat = |text: &str, reason: Value| json!({ "choices": [{ "index": 0, "delta": { "content": text }, "finish_reason": reason }] });
    let claude = [
        json!({ "type": "message_start", "message": { "role": "assistant", "content": [] } }),
        json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "text", "text": "" } }),
        json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": "AB" } }),
        json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" } }),
        json!({ "type": "message_stop", "amazon-bedrock-invocationMetrics": metrics }),
    ];
    let rows: [(&str, &[Value]); 4] = [
        (
            "FINISH",
            &[titan("A", Value::Null), titan("B", json!("FINISH"))],
        ),
        (
            "COMPLETE",
            &[command("A", false), command("B", false), command("", true)],
        ),
        ("stop", &[chat("A", Value::Null), chat("B", json!("stop"))]),
        ("end_turn", &claude),
    ];
    for (reason, values) in rows {
        let (demux, choices) = read_events(values);
        assert_eq!(
            choices,
            [("AB".to_owned(), Some(reason.to_owned()))],
            "{values:?}"
        );
        assert_eq!(demux.metadata().dialect(), Some(Dialect::Bedrock));
    }
    assert_eq!(read_events(&claude).0.usage().prompt_tokens, Some(3));
}

#[test]
fn d06_a_value_of_another_kind_is_foreign_among_decoded_chunks() {
    let titan = json!({ "outputText": "A", "completionReason": "FINISH" });
    let chat = json!({ "choices": [{ "index": 0, "delta": { "content": "B" } }] });
    let (demux, choices) = read_events(&[titan, chat]);
    assert_eq!(choices, [("A".to_owned(), Some("FINISH".to_owned()))]);
    assert!(demux.warnings().iter().any(|warning| warning.code == "D6"));
}

#[test]
fn x08_the_body_of_an_error_of_amazon_is_one() {
    let bodies = [
        json!({ "message": "The security token is expired" }),
        json!({ "Message": "User is not authorized" }),
        json!({ "__type": "com.amazon.coral#ThrottlingException", "message": "Too many requests" }),
    ];
    for body in &bodies {
        let (demux, choices) = read_events(std::slice::from_ref(body));
        assert_eq!(choices, []);
        let closed = demux.closed().expect("the stream has ended");
        assert!(
            matches!(closed, Err(crate::StreamError::Server(_))),
            "{body}"
        );
    }
    // Its type shows what the last one is.
    let mut demux = Demux::new(Config::default());
    demux.feed(bodies[2].to_string().as_bytes());
    demux.finish();
    let closed = demux.closed().expect("the stream has ended");
    assert!(matches!(closed, Err(crate::StreamError::Server(_))));
}

#[test]
fn b10_the_counts_in_chunks_are_usage_until_the_metrics_come() {
    let usage = |chunks: &[Value]| {
        let mut demux = Demux::new(Config::default());
        for chunk in chunks {
            let bytes = base64::Engine::encode(
                &base64::engine::general_purpose::STANDARD,
                chunk.to_string(),
            );
            demux.feed(format!("{}\n", json!({ "chunk": { "bytes": bytes } })).as_bytes());
        }
        demux.finish();
        let usage = demux.usage();
        (usage.prompt_tokens, usage.completion_tokens)
    };
    let llama = [
        json!({ "generation": "A", "prompt_token_count": 3, "generation_token_count": 1, "stop_reason": null }),
        json!({ "generation": "B", "prompt_token_count": null, "generation_token_count": 2, "stop_reason": null }),
        json!({ "generation": "", "generation_token_count": 3, "stop_reason": "stop",
            "amazon-bedrock-invocationMetrics": { "inputTokenCount": 4, "outputTokenCount": 5 } }),
    ];
    assert_eq!(usage(&llama[..2]), (Some(3), Some(2)));
    assert_eq!(usage(&llama), (Some(4), Some(5)));
    let titan = json!({ "outputText": "A", "index": 0, "totalOutputTextTokenCount": 10,
        "completionReason": "LENGTH", "inputTextTokenCount": 5 });
    assert_eq!(usage(&[titan]), (Some(5), Some(10)));
}

#[test]
fn b07_b16_bytes_under_the_name_of_another_event_are_no_chunk() {
    // {"generation":"Hi","stop_reason":null}
    const CHUNK: &str =
        r#"{"bytes":"eyJnZW5lcmF0aW9uIjoiSGkiLCJzdG9wX3JlYXNvbiI6bnVsbH0=","p":"ab"}"#;
    let read = |name: Option<&str>, config: Config| {
        let name = name.map(|name| format!("event: {name}\n"));
        let mut demux = Demux::new(config);
        demux.feed(format!("{}data: {CHUNK}\n\n", name.unwrap_or_default()).as_bytes());
        demux.finish();
        let message = demux.choices().next().map(|choice| choice.message());
        message.map(|message| message.content)
    };
    let configs = [
        Config::default(),
        Config::default().with_dialect(Dialect::Bedrock),
    ];
    for config in configs {
        for name in [None, Some(""), Some("chunk"), Some("message"), Some("data")] {
            let text = read(name, config.clone());
            assert_eq!(text.as_deref(), Some("Hi"), "{name:?}");
        }
        for name in ["attachment", "ping", "chunks"] {
            assert_eq!(read(Some(name), config.clone()), None, "{name}");
        }
    }
}
