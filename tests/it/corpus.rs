//! Every available stream gives the same results as the reference client.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Write,
};

use serde_json::{Value, json};
use unbraid_core::{
    CallKind, CallStatus, ChoiceEnd, CompletionKind, Demux, JsonErrorKind, Message, ReadyCursor,
    ReadyPolicy, ReasoningSource, StreamError, ToolCall, Transcript,
};
use unbraid_testkit::{
    dialects,
    fixture::{Corpus, Fixture, Options, SplitThink, corpus},
    reference::{self, Early, Outcome},
};

use crate::support::{demux, options};

/// The results that both clients must agree on: one JSON value per field.
type Facts = BTreeMap<String, Value>;

#[track_caller]
pub(crate) fn check(name: &str, bytes: &[u8], fixture_options: &Options) -> Result<(), String> {
    if dialects::accumulate(bytes).is_some() {
        return Ok(()); // the tests of `dialects` compare it
    }
    let (demux, _) = demux([bytes], options(fixture_options));
    let mut expected = expected(&reference::accumulate(bytes, fixture_options));
    let mut actual = actual(&demux);
    mask_statuses(&mut expected, &mut actual);
    if matches!(
        demux.closed(),
        Some(Err(StreamError::NotAStream { .. }
            | StreamError::Interrupted { .. }
            | StreamError::UnsupportedFormat { .. }))
    ) {
        // Neither client has choices. The number of lost events of a body that is not a stream does not matter.
        expected.remove("lost");
        actual.remove("lost");
    }
    let keys = expected.keys().chain(actual.keys());
    let mut differ: Vec<&String> = keys
        .filter(|key| expected.get(*key) != actual.get(*key))
        .collect();
    differ.sort();
    differ.dedup();
    let show = |facts: &Facts, key: &str| {
        facts
            .get(key)
            .map_or_else(|| "-".to_owned(), Value::to_string)
    };
    let lines = differ.into_iter().map(|key| {
        let (expected, actual) = (show(&expected, key), show(&actual, key));
        format!("  {key}\n    reference {expected}\n    unbraid   {actual}\n")
    });
    let report: String = lines.collect();
    if report.is_empty() {
        Ok(())
    } else {
        Err(format!("{name}\n{report}"))
    }
}

/// Removes the statuses that the reference client cannot decide.
fn mask_statuses(expected: &mut Facts, actual: &mut Facts) {
    for (key, expected) in expected
        .iter_mut()
        .filter(|(key, _)| key.ends_with(" statuses") || key.ends_with(" ready"))
    {
        let (Some(expected), Some(actual)) = (
            expected.as_array(),
            actual.get_mut(key).and_then(Value::as_array_mut),
        ) else {
            continue;
        };
        for (_, actual) in expected
            .iter()
            .zip(actual)
            .filter(|(expected, _)| expected.is_null())
        {
            *actual = Value::Null;
        }
    }
}

fn expected(outcome: &Outcome) -> Facts {
    let mut facts = Facts::from([
        ("order".to_owned(), json!(outcome.order)),
        (
            "usage".to_owned(),
            outcome.usage.clone().unwrap_or(Value::Null),
        ),
        ("error".to_owned(), json!(outcome.error.is_some())),
        ("refused".to_owned(), json!(outcome.refused)),
        ("lost".to_owned(), json!(outcome.lost)),
        ("codes".to_owned(), json!(outcome.codes)),
    ]);
    for (index, choice) in &outcome.choices {
        let calls: Vec<Value> = choice
            .tool_calls
            .iter()
            .map(|call| {
                json!([
                    call.id,
                    call.name.as_deref().unwrap_or(""),
                    call.kind,
                    call.arguments
                ])
            })
            .collect();
        let legacy = choice
            .function_call
            .as_ref()
            .map(|call| json!([call.name.as_deref().unwrap_or(""), call.arguments]));
        let statuses = choice.tool_calls.iter().map(|call| call.status);
        let statuses = statuses.chain(choice.function_call.iter().map(|call| call.status));
        let statuses: Vec<_> = statuses.collect();
        facts.extend(choice_facts(
            *index,
            [
                ("role", json!(choice.role)),
                ("content", json!(choice.content)),
                ("reasoning", json!(choice.reasoning)),
                ("reasoning_source", json!(choice.reasoning_source)),
                ("refusal", json!(choice.refusal)),
                ("tool_calls", json!(calls)),
                ("function_call", json!(legacy)),
                ("statuses", json!(statuses)),
                ("ready", ready(choice)),
                ("end", json!(choice.end)),
                ("finish_reason", json!(choice.finish_reason)),
                (
                    "logprobs",
                    json!([
                        choice.logprobs_content_len,
                        choice.logprobs_refusal_len,
                        choice.logprobs_tokens_len
                    ]),
                ),
                ("error", json!(choice.error.is_some())),
            ],
        ));
    }
    facts
}

/// When each call could be run, early or at the end, for the two policies that allow an early moment.
fn ready(choice: &reference::Choice) -> Value {
    let fact = |early: &Option<Early>, arguments: &str, status: Option<&str>| match (early, status)
    {
        (
            Some(Early {
                arguments,
                late: true,
            }),
            _,
        ) => json!(["late", arguments.len()]),
        (
            Some(Early {
                arguments,
                late: false,
            }),
            _,
        ) => json!(["ready", arguments]),
        (None, Some("complete" | "empty_as_object" | "repaired" | "missing_id"))
            if matches!(choice.end, "finished" | "done_without_finish") =>
        {
            json!(["ready", arguments])
        }
        (None, Some(_)) => json!("error"),
        (None, None) => Value::Null,
    };
    let calls = choice.tool_calls.iter();
    let calls = calls.map(|call| (&call.early, &call.arguments, call.status));
    let legacy = choice.function_call.iter();
    let legacy = legacy.map(|call| (&call.early, &call.arguments, call.status));
    calls
        .chain(legacy)
        .flat_map(|(early, arguments, status)| {
            early
                .iter()
                .map(move |early| fact(early, arguments, status))
        })
        .collect()
}

/// The same, by cursors that read the whole choice at its end.
fn actual_ready<'c>(choice: &Transcript, calls: impl Iterator<Item = &'c ToolCall>) -> Value {
    let fact =
        |call: &ToolCall, policy| match ReadyCursor::new(call.call_index, policy).poll(choice) {
            Some(Ok(call)) => json!(["ready", call.arguments]),
            Some(Err(JsonErrorKind::LateFragment { bytes, .. })) => json!(["late", bytes]),
            Some(Err(_)) => json!("error"),
            None => json!("never"),
        };
    calls
        .flat_map(|call| {
            [ReadyPolicy::NextCall, ReadyPolicy::ValidJson].map(|policy| fact(call, policy))
        })
        .collect()
}

fn choice_facts<const N: usize>(index: u32, facts: [(&str, Value); N]) -> Facts {
    facts
        .into_iter()
        .map(|(key, value)| (format!("choice {index:>3} {key}"), value))
        .collect()
}

fn actual(demux: &Demux) -> Facts {
    let order: Vec<u32> = demux.choices().map(|choice| choice.index().0).collect();
    let error = matches!(demux.closed(), Some(Err(StreamError::Server(_))));
    let refused = matches!(demux.closed(), Some(Err(StreamError::Malformed { .. })));
    let lost = demux
        .warnings()
        .iter()
        .filter(|w| matches!(w.code, "X13" | "S27"))
        .count();
    let mut facts = Facts::from([
        ("order".to_owned(), json!(order)),
        ("usage".to_owned(), demux.usage().raw),
        ("error".to_owned(), json!(error)),
        ("refused".to_owned(), json!(refused)),
        ("lost".to_owned(), json!(lost)),
        ("codes".to_owned(), json!(codes(demux))),
    ]);
    let aggregate = demux.aggregate();
    for choice in demux.choices() {
        let index = choice.index().0;
        let entries = aggregate["choices"]
            .as_array()
            .expect("an aggregate lists its choices");
        let entry = entries
            .iter()
            .find(|entry| entry["index"] == index)
            .expect("every choice");
        facts.extend(choice_results(choice, entry, error));
    }
    facts
}

/// The warnings of the library about the choices as a whole.
fn codes(demux: &Demux) -> BTreeSet<&'static str> {
    let warnings = demux.warnings().into_iter();
    let stream_warnings = warnings.filter(|warning| warning.choice.is_none());
    let codes = stream_warnings.map(|warning| warning.code);
    codes
        .filter(|code| matches!(*code, "E12" | "E13" | "E30"))
        .collect()
}

fn choice_results(choice: &Transcript, entry: &Value, failed: bool) -> Facts {
    let message = choice.message();
    let calls: Vec<Value> = message
        .tool_calls
        .iter()
        .filter(|call| call.kind != CallKind::LegacyFunction)
        .map(|call| {
            // The type of a tool that the server runs is kept beside.
            let kind = call.extra.iter().find(|(key, _)| &**key == "type");
            let kind: Value = match kind {
                Some((_, raw)) => serde_json::from_str(raw).expect("JSON"),
                None => call.kind.as_str().into(),
            };
            json!([call.id.as_deref(), &*call.name, kind, call.arguments])
        })
        .collect();
    let legacy = message
        .tool_calls
        .iter()
        .find(|call| call.kind == CallKind::LegacyFunction);
    // In the order of the reference client: the legacy call is last.
    let (functions, legacy_calls): (Vec<_>, Vec<_>) = message
        .tool_calls
        .iter()
        .partition(|call| call.kind != CallKind::LegacyFunction);
    let statuses = functions.iter().chain(&legacy_calls);
    let statuses: Vec<_> = statuses
        .map(|call| call.status.map(CallStatus::as_str))
        .collect();
    let len = |key: &str| entry["logprobs"][key].as_array().map_or(0, Vec::len);
    let text = if choice.kind() == CompletionKind::Text {
        &entry["text"]
    } else {
        &entry["message"]["content"]
    };
    assert_eq!(
        text.as_str().unwrap_or(""),
        message.content,
        "aggregate and message agree"
    );
    let ended_by_error = matches!(choice.end(), Some(ChoiceEnd::ServerError(_)));
    choice_facts(
        choice.index().0,
        [
            ("role", json!(choice.role().map(|role| &**role))),
            ("content", json!(message.content)),
            ("reasoning", json!(message.reasoning)),
            ("reasoning_source", json!(source_name(&message))),
            ("refusal", json!(message.refusal)),
            ("tool_calls", json!(calls)),
            (
                "function_call",
                json!(legacy.map(|call| json!([&*call.name, call.arguments]))),
            ),
            ("statuses", json!(statuses)),
            (
                "ready",
                actual_ready(choice, functions.iter().chain(&legacy_calls).copied()),
            ),
            ("end", json!(choice.end().map(ChoiceEnd::as_str))),
            (
                "finish_reason",
                json!(choice.finish_reason().map(|reason| reason.as_str())),
            ),
            (
                "logprobs",
                json!([len("content"), len("refusal"), len("tokens")]),
            ),
            ("error", json!(ended_by_error && !failed)),
        ],
    )
}

fn source_name(message: &Message) -> Option<String> {
    Some(match message.reasoning_source.as_ref()? {
        ReasoningSource::Field(name) => format!("field {name}"),
        ReasoningSource::ContentParts => "parts".into(),
        ReasoningSource::Details => "details".into(),
        ReasoningSource::ThinkTags => "tags".into(),
        other => format!("{other:?}"),
    })
}

#[test]
fn fixtures_agree_with_the_reference_client() {
    let failures: Vec<String> = Fixture::all()
        .iter()
        .filter_map(|fixture| check(&fixture.name, &fixture.bytes, &fixture.options).err())
        .collect();
    assert!(
        failures.is_empty(),
        "{} differ\n{}",
        failures.len(),
        failures.join("\n")
    );
}

/// Prints a line directly, because the test harness captures the output of tests that pass.
pub(crate) fn print_uncaptured(line: &str) {
    let mut stderr = std::io::stderr();
    writeln!(stderr, "{line}").expect("stderr is writable");
}

#[test]
fn the_corpus_agrees_with_the_reference_client() {
    agree_on_the_corpus(&Options::default());
}

#[test]
fn c18_the_corpus_agrees_with_the_reference_client_when_tags_are_separated() {
    for split_think in [SplitThink::AtTag, SplitThink::AtStart] {
        agree_on_the_corpus(&Options {
            split_think,
            ..Options::default()
        });
    }
}

#[track_caller]
fn agree_on_the_corpus(options: &Options) {
    let streams = match corpus() {
        Corpus::Streams(streams) => streams,
        Corpus::NotSet(path) => {
            let path = path.display();
            return print_uncaptured(&format!(
                "corpus: skipped, no streams in {path}; set UNBRAID_CORPUS to its path"
            ));
        }
        Corpus::Missing(path) => {
            panic!(
                "UNBRAID_CORPUS is set, but there are no streams in {}",
                path.display()
            )
        }
    };
    print_uncaptured(&format!("corpus: {} streams", streams.len()));
    let failures: Vec<String> = streams
        .iter()
        .filter_map(|(path, bytes)| check(&path.display().to_string(), bytes, options).err())
        .collect();
    assert!(
        failures.is_empty(),
        "{} differ\n{}",
        failures.len(),
        failures.join("\n")
    );
}
