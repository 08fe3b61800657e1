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
