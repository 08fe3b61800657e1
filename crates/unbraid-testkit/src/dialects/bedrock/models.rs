//! The formats of single models (B10, B13, B14).

use serde_json::{Value, json};

use crate::dialects::{Answer, Call, WireValue, entries, merge, reason, text};

/// Whether a value is one of Llama's, or Titan's answer to a request without streaming.
pub(in crate::dialects) fn is_body(value: &Value) -> bool {
    let has = |key: &str| !value[key].is_null();
    (has("generation") && has("generation_token_count"))
        || (has("results") && has("inputTextTokenCount"))
}

/// Whether a value outside of a chunk has the text of a model.
pub(super) fn is_of_model(value: &Value) -> bool {
    let lists = ["outputs", "results", "generations"];
    lists.iter().any(|key| !entries(&value[*key]).is_empty())
        || value["generation"].is_string()
        || value["completion"].is_string()
        || value["text"].is_string() && !value["generation_id"].is_null()
}

/// Reads values outside of chunks. The first one is the whole answer if it has a reason.
pub(super) fn read_decoded(values: &[WireValue]) -> Answer {
    let first = models(&values[..1]);
    let is_whole = first
        .choices
        .values()
        .any(|choice| choice.finish_reason.is_some());
    let values = if is_whole { &values[..1] } else { values };
    let mut answer = models(values);
    for choice in answer.choices.values_mut() {
        if is_whole && choice.finish_reason.is_none() {
            choice.end = "done_without_finish";
        }
    }
    answer
}

/// The formats of single models (B10, B13, B14).
pub(super) fn models(chunks: &[WireValue]) -> Answer {
    let mut answer = Answer::default();
    for WireValue { value, .. } in chunks {
        for entry in entries(&value["choices"]) {
            let index = entry["index"].as_u64().unwrap_or_default() as u32;
            let choice = answer.choices.entry(index).or_default();
            choice.content += text(&entry["delta"], "content");
            choice.content += text(entry, "text");
            let why = reason(&entry["finish_reason"]).or_else(|| reason(&entry["stop_reason"]));
            choice.finish_reason = choice.finish_reason.take().or(why);
        }
        if let Some(entry) = ["generation", "outputText", "completion"]
            .iter()
            .find(|key| value.get(**key).is_some())
        {
            let choice = answer.choices.entry(0).or_default();
            choice.content += text(value, entry);
            let why = reason(&value["stop_reason"]).or_else(|| reason(&value["completionReason"]));
            choice.finish_reason = choice.finish_reason.take().or(why);
        }
        for (list, key, why) in [
            ("outputs", "text", "stop_reason"),
            ("results", "outputText", "completionReason"),
            ("generations", "text", "finish_reason"),
        ] {
            for (index, entry) in (0..).zip(entries(&value[list])) {
                let choice = answer.choices.entry(index).or_default();
                choice.content += text(entry, key);
                choice.finish_reason = choice.finish_reason.take().or_else(|| reason(&entry[why]));
            }
        }
        for citation in entries(&value["citations"]) {
            let index = value["index"].as_u64().unwrap_or_default() as u32;
            let choice = answer.choices.entry(index).or_default();
            choice.list("annotations", citation.clone());
        }
        if value.get("is_finished").is_some() {
            let index = value["index"].as_u64().map(|index| index as u32);
            let is_end_of_all = value["is_finished"] == true && index.is_none();
            if !is_end_of_all {
                let choice = answer.choices.entry(index.unwrap_or_default()).or_default();
                choice.content += text(value, "text");
                let is_first = choice.calls.is_empty();
                for call in entries(&value["tool_calls"]).iter().filter(|_| is_first) {
                    choice.calls.push(Call {
                        name: text(call, "name").to_owned(),
                        arguments: call["parameters"].to_string(),
                        ..Call::default()
                    });
                }
            }
            for (known, choice) in &mut answer.choices {
                if index.is_none_or(|index| index == *known) {
                    choice.finish_reason = choice
                        .finish_reason
                        .take()
                        .or_else(|| reason(&value["finish_reason"]));
                }
            }
        }
        let metrics = &value["amazon-bedrock-invocationMetrics"];
        if metrics.is_null() {
            counts(value, &mut answer.usage);
        } else if value["choices"].is_null() {
            merge(&mut answer.usage, metrics);
        }
    }
    answer
}

/// The counts of tokens that stand between the other fields.
fn counts(value: &Value, usage: &mut Value) {
    for key in [
        "prompt_token_count",
        "generation_token_count",
        "inputTextTokenCount",
        "totalOutputTextTokenCount",
    ] {
        if !value[key].is_null() {
            merge(usage, &json!({ key: value[key] }));
        }
    }
    if let [result] = &*entries(&value["results"]) {
        merge(usage, &json!({ "tokenCount": result["tokenCount"] }));
    }
}
