//! Every stream of a dialect without `choices` gives the same results as the slow reader of that dialect.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Value, json};
use unbraid_core::{CallKind, ChoiceEnd, Config, Demux, StreamError, Transcript};
use unbraid_testkit::{
    dialects::{self, Answer, Choice},
    fixture::{Corpus, Fixture, corpus},
};

use crate::{
    corpus::print_uncaptured,
    support::{demux, options},
};

/// The results that both readers must agree on.
type Facts = BTreeMap<String, Value>;

fn expected(answer: &Answer) -> Facts {
    let mut facts = Facts::from([
        ("dialect".to_owned(), json!(answer.dialect)),
        ("usage".to_owned(), answer.usage.clone()),
        ("error".to_owned(), json!(answer.error)),
        ("malformed".to_owned(), json!(answer.malformed)),
        ("lost".to_owned(), json!(answer.lost)),
        ("guardrail".to_owned(), json!(answer.guardrail)),
        (
            "choices".to_owned(),
            json!(answer.choices.keys().collect::<Vec<_>>()),
        ),
    ]);
    for (index, choice) in &answer.choices {
        let Choice {
            content,
            reasoning,
            refusal,
            calls,
            finish_reason,
            end,
            lists,
            guardrail,
        } = choice;
        let calls: Vec<Value> = calls
            .iter()
            .map(|call| json!([call.id, call.name, call.custom, parsed(&call.arguments)]))
            .collect();
        facts.insert(format!("{index} content"), json!(content));
        facts.insert(format!("{index} reasoning"), json!(reasoning));
        facts.insert(format!("{index} refusal"), json!(refusal));
        facts.insert(format!("{index} calls"), json!(calls));
        facts.insert(format!("{index} finish_reason"), json!(finish_reason));
        facts.insert(format!("{index} end"), json!(end));
        facts.insert(format!("{index} guardrail"), json!(guardrail));
        for (list, entries) in lists.iter().filter(|(_, entries)| !entries.is_empty()) {
            facts.insert(format!("{index} {list}"), json!(entries));
        }
    }
    facts
}

/// Arguments as a value, if they are JSON: the slow reader writes numbers anew.
fn parsed(arguments: &str) -> Value {
    serde_json::from_str(arguments).unwrap_or_else(|_| json!(arguments))
}

fn actual(demux: &Demux) -> Facts {
    let warnings = demux.warnings();
    let lost = warnings
        .iter()
        .filter(|warning| matches!(warning.code, "X13" | "S27"));
    let dialect = demux.metadata().dialect().map(|dialect| dialect.as_str());
    let mut choices: Vec<&Transcript> = demux.choices().collect();
    choices.sort_by_key(|choice| choice.index());
    let indexes: Vec<u32> = choices.iter().map(|choice| choice.index().0).collect();
    let closed = demux.closed();
    let mut facts = Facts::from([
        ("dialect".to_owned(), json!(dialect)),
        ("usage".to_owned(), demux.usage().raw),
        (
            "error".to_owned(),
            json!(matches!(closed, Some(Err(StreamError::Server(_))))),
        ),
        (
            "malformed".to_owned(),
            json!(matches!(closed, Some(Err(StreamError::Malformed { .. })))),
        ),
        ("lost".to_owned(), json!(lost.count())),
        ("guardrail".to_owned(), guardrail(&demux.metadata().extra)),
        ("choices".to_owned(), json!(indexes)),
    ]);
    for choice in choices {
        let index = choice.index();
        let message = choice.message();
        let calls: Vec<Value> = message
            .tool_calls
            .iter()
            .map(|call| {
                let custom = call.kind == CallKind::Custom;
                json!([
                    call.id.as_deref(),
                    &*call.name,
                    custom,
                    parsed(&call.arguments)
                ])
            })
            .collect();
        let reason = choice
            .finish_reason()
            .map(|reason| reason.as_str().to_owned());
        facts.insert(format!("{index} content"), json!(message.content));
        facts.insert(format!("{index} reasoning"), json!(message.reasoning));
        facts.insert(format!("{index} refusal"), json!(message.refusal));
        facts.insert(format!("{index} calls"), json!(calls));
        facts.insert(format!("{index} finish_reason"), json!(reason));
        facts.insert(
            format!("{index} end"),
            json!(choice.end().map(ChoiceEnd::as_str)),
        );
        facts.insert(format!("{index} guardrail"), guardrail(choice.extra()));
        for list in [
            "annotations",
            "images",
            "reasoning_details",
            "content_parts",
        ] {
            let entries = message.extra.iter().find(|(key, _)| **key == *list);
            if let Some((_, raw)) = entries {
                let entries: Value = serde_json::from_str(raw).expect("a list is JSON");
                facts.insert(format!("{index} {list}"), entries);
            }
        }
    }
    facts
}

/// The fields among `extra` that guardrails of Bedrock add (B18).
fn guardrail(extra: &[(Arc<str>, Arc<str>)]) -> Value {
    let fields = extra
        .iter()
        .filter(|(key, _)| key.starts_with("amazon-bedrock-"));
    fields
        .map(|(key, raw)| (key.to_string(), parsed(raw)))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

/// Compares a stream with the slow reader of its dialect; `None` if it has `choices`, or no dialect.
fn check(name: &str, bytes: &[u8], config: Config) -> Option<Result<&'static str, String>> {
    let answer = dialects::accumulate(bytes)?;
    let (demux, _) = demux([bytes], config);
    let (expected, actual) = (expected(&answer), actual(&demux));
    let mut keys: Vec<&String> = expected.keys().chain(actual.keys()).collect();
    keys.sort();
    keys.dedup();
    let differ = keys
        .into_iter()
        .filter(|key| expected.get(*key) != actual.get(*key));
    let show = |facts: &Facts, key: &str| {
        facts
            .get(key)
            .map_or_else(|| "-".to_owned(), Value::to_string)
    };
    let lines: String = differ
        .map(|key| {
            let (expected, actual) = (show(&expected, key), show(&actual, key));
            format!("  {key}\n    slow    {expected}\n    unbraid {actual}\n")
        })
        .collect();
    Some(if lines.is_empty() {
        Ok(answer.dialect)
    } else {
        Err(format!("{name}\n{lines}"))
    })
}

/// Checks streams, and returns how many there were of each dialect.
#[track_caller]
fn check_all<'s>(
    streams: impl IntoIterator<Item = (String, &'s [u8], Config)>,
) -> BTreeMap<&'static str, usize> {
    let (mut counts, mut failures) = (BTreeMap::new(), Vec::new());
    for (name, bytes, config) in streams {
        match check(&name, bytes, config) {
            Some(Ok(dialect)) => *counts.entry(dialect).or_default() += 1,
            Some(Err(failure)) => failures.push(failure),
            None => {}
        }
    }
    assert!(
        failures.is_empty(),
        "{} differ\n{}",
        failures.len(),
        failures.join("\n")
    );
    counts
}

#[test]
fn fixtures_agree_with_the_slow_readers() {
    let fixtures = Fixture::all();
    // The slow readers have no limits.
    let limitless = fixtures
        .iter()
        .filter(|fixture| !fixture.name.contains("four-gibibytes"));
    let counts = check_all(limitless.map(|fixture| {
        let config = options(&fixture.options);
        (fixture.name.clone(), fixture.bytes.as_slice(), config)
    }));
    for dialect in [
        "anthropic",
        "responses",
        "gemini",
        "ollama",
        "cohere",
        "bedrock",
    ] {
        assert!(
            counts.get(dialect).is_some_and(|count| *count > 3),
            "{dialect}: {counts:?}"
        );
    }
}

#[test]
fn the_corpus_agrees_with_the_slow_readers() {
    let streams = match corpus() {
        Corpus::Streams(streams) => streams,
        Corpus::NotSet(path) => {
            let path = path.display();
            return print_uncaptured(&format!(
                "dialects: skipped, no streams in {path}; set UNBRAID_CORPUS to its path"
            ));
        }
        Corpus::Missing(path) => panic!("there are no streams in {}", path.display()),
    };
    let streams = streams.iter().map(|(path, bytes)| {
        (
            path.display().to_string(),
            bytes.as_slice(),
            Config::default(),
        )
    });
    let counts = check_all(streams);
    print_uncaptured(&format!("dialects: {counts:?}"));
}
