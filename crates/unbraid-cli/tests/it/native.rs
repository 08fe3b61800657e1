//! `collect --native`: the provider's own response. Read again, it gives the same answer as the stream.

use std::{collections::BTreeMap, thread};

use serde_json::{Map, Value, json};
use unbraid_core::{ChoiceEnd, Config, Demux, Transcript};
use unbraid_testkit::fixture::{Corpus, Fixture, corpus};

use crate::{run_fixture, unbraid};

const DIALECTS: [&str; 5] = ["anthropic", "bedrock", "cohere", "gemini", "ollama"];

fn demux(bytes: &[u8]) -> Demux {
    let mut demux = Demux::new(Config::default());
    demux.feed(bytes);
    demux.finish();
    demux
}

/// What a stream and the response without streaming have in common.
fn facts(demux: &Demux) -> Value {
    let metadata = demux.metadata();
    let mut choices: Vec<&Transcript> = demux.choices().collect();
    choices.sort_by_key(|choice| choice.index());
    let choices: Vec<Value> = choices.into_iter().map(choice_facts).collect();
    json!({
        "dialect": metadata.dialect().map(|dialect| dialect.as_str()),
        "id": metadata.id.as_deref(),
        "model": metadata.model.as_deref(),
        "created": metadata.created,
        "usage": demux.usage().raw,
        "extra": fields(&metadata.extra),
        "choices": choices,
    })
}

fn choice_facts(choice: &Transcript) -> Value {
    let message = choice.message();
    let calls = message.tool_calls.iter().map(|call| {
        let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or_else(|_| json!({}));
        json!([
            call.id.as_deref(),
            &*call.name,
            arguments,
            fields(&call.extra)
        ])
    });
    json!({
        "index": choice.index().0,
        "role": message.role.as_deref(),
        "content": message.content,
        "reasoning": message.reasoning,
        "calls": calls.collect::<Vec<Value>>(),
        "lists": fields(&message.extra),
        "reason": choice.finish_reason().map(|reason| reason.as_str()),
        "end": choice.end().map(ChoiceEnd::as_str),
        "extra": fields(choice.extra()),
    })
}

/// Fields by their names. Null means absent.
fn fields<K: AsRef<str>>(fields: &[(K, K)]) -> Value {
    let parsed = fields.iter().map(|(name, raw)| {
        let value: Value = serde_json::from_str(raw.as_ref()).unwrap();
        (name.as_ref().to_owned(), value)
    });
    let set = parsed.filter(|(_, value)| !value.is_null());
    Value::Object(set.collect::<Map<_, _>>())
}

/// How a stream was printed.
enum Checked {
    Same,
    /// It has no native form, and the error says why.
    NoForm(String),
    Different(String),
}

fn check(name: &str, bytes: &[u8]) -> Checked {
    let stream = demux(bytes);
    let mut ends = stream
        .choices()
        .map(|choice| choice.end().map(ChoiceEnd::as_str));
    let is_finished =
        stream.closed().is_some_and(Result::is_ok) && ends.all(|end| end == Some("finished"));
    let run = unbraid("collect --native", bytes);
    assert!(!run.stderr.contains("panicked"), "{name}: {}", run.stderr);
    if run.stderr.contains("no native form") {
        assert_eq!((run.code, run.stdout.as_str()), (1, ""), "{name}");
        return Checked::NoForm(run.stderr);
    }
    if stream.choices().next().is_none() {
        assert_eq!(run.stdout, "", "{name}");
        assert_ne!(run.code, 0, "{name}");
        return Checked::Same;
    }
    assert!(run.json().get("unbraid").is_none(), "{name}");
    if !is_finished {
        assert_ne!(run.code, 0, "{name}");
        return check_ends(name, &stream, &demux(run.stdout.as_bytes()));
    }
    assert_eq!(run.code, 0, "{name}: {}", run.stderr);
    let mut expected = facts(&stream);
    // A response of Converse names neither, unlike that of a model that was invoked.
    if expected["dialect"] == "bedrock" {
        expected["id"] = Value::Null;
        expected["model"] = Value::Null;
        // Nor is it a text completion, as that of such a model may be.
        if expected["choices"][0].is_object() {
            expected["choices"][0]["role"] = "assistant".into();
        }
    }
    let mut again = facts(&demux(run.stdout.as_bytes()));
    move_guardrail(&mut expected);
    move_guardrail(&mut again);
    if again == expected {
        return Checked::Same;
    }
    Checked::Different(format!("{name}:\n{again:#}\n{expected:#}\n{}", run.stdout))
}

/// The response of an answer that is not complete is not one, either.
fn check_ends(name: &str, stream: &Demux, again: &Demux) -> Checked {
    let is_finished = |choice: Option<&Transcript>| {
        let end = choice.and_then(Transcript::end);
        end.map(|end| matches!(end, ChoiceEnd::Finished(_)))
    };
    let expected: Vec<_> = stream
        .choices()
        .map(|choice| is_finished(Some(choice)))
        .collect();
    let ends = stream
        .choices()
        .map(|choice| is_finished(again.choice(choice.index())));
    let ends: Vec<_> = ends.collect();
    match ends == expected {
        true => Checked::Same,
        false => Checked::Different(format!("{name}: {ends:?} {expected:?}")),
    }
}

/// Moves what a guardrail did out of the choice. A stream has it in chunks before and after the end of the choice, and a
/// response of Bedrock in one place.
fn move_guardrail(facts: &mut Value) {
    let choice = facts.pointer_mut("/choices/0/extra");
    let Some(extra) = choice.and_then(Value::as_object_mut) else {
        return;
    };
    let is_guardrail = |name: &String| name.starts_with("amazon-bedrock-");
    let names: Vec<String> = extra
        .keys()
        .filter(|name| is_guardrail(name))
        .cloned()
        .collect();
    for name in names {
        let moved = facts["choices"][0]["extra"]
            .as_object_mut()
            .unwrap()
            .remove(&name);
        facts["extra"][name] = moved.unwrap();
    }
}

/// Checks streams on two threads, and returns the errors of those without a native form.
fn check_all(streams: &[(String, Vec<u8>)]) -> BTreeMap<String, String> {
    let (one, two) = streams.split_at(streams.len() / 2);
    let checked = thread::scope(|scope| {
        let halves = [one, two].map(|half| {
            scope.spawn(move || {
                let checked = half.iter();
                let checked = checked.map(|(name, bytes)| (name.clone(), check(name, bytes)));
                checked.collect::<Vec<_>>()
            })
        });
        let joined = halves.into_iter().flat_map(|half| half.join().unwrap());
        joined.collect::<Vec<_>>()
    });
    let mut errors = BTreeMap::new();
    let mut differences = Vec::new();
    for (name, checked) in checked {
        match checked {
            Checked::Same => {}
            Checked::NoForm(error) => {
                errors.insert(name, error);
            }
            Checked::Different(text) => differences.push(text),
        }
    }
    let count = differences.len();
    assert_eq!(count, 0, "{}", differences.join("\n"));
    errors
}

#[test]
fn the_native_response_of_every_fixture_is_the_same_answer() {
    let fixtures = Fixture::all().into_iter();
    let streams: Vec<_> = fixtures
        .filter(|fixture| DIALECTS.contains(&fixture.dialect()))
        .map(|fixture| (fixture.name, fixture.bytes))
        .collect();
    assert!(streams.len() > 80, "{}", streams.len());
    let errors = check_all(&streams);
    let expected = [
        // Arguments that were cut have no place in an object.
        ("anthropic/anthropic-a23-a24-cut-at-max-tokens", "arguments"),
        ("anthropic/gateway-a16-cut", "arguments"),
        ("bedrock/bedrock-b10-choices", "2 choices"),
        ("bedrock/bedrock-b10-mistral", "2 choices"),
        ("bedrock/bedrock-b13-two-generations", "2 choices"),
        ("bedrock/bedrock-b13-whole-generations", "2 choices"),
        ("bedrock/bedrock-b18-guardrail-of-choices", "2 choices"),
        ("gemini/vertex-g09-arguments-after-the-name", "arguments"),
        ("gemini/vertex-g09-streamed-arguments-cut", "arguments"),
    ];
    for (name, message) in expected {
        let error = errors.get(name).unwrap_or_else(|| panic!("{name}"));
        assert!(error.contains(message), "{name}: {error}");
    }
    assert_eq!(errors.len(), expected.len(), "{errors:#?}");
}

#[test]
fn responses_have_no_native_form_and_chats_are_their_own() {
    let run = run_fixture(
        "collect --native",
        &Fixture::named("responses/openai-p09-p16-text"),
    );
    assert_eq!((run.code, run.stdout.as_str()), (1, ""));
    assert!(
        run.stderr
            .contains("no native form of the dialect responses"),
        "{}",
        run.stderr
    );
    let fixture = Fixture::named("openai_chat/azure-three-choices");
    let native = run_fixture("collect --native", &fixture).json();
    let mut collected = run_fixture("collect", &fixture).json();
    collected.as_object_mut().unwrap().remove("unbraid");
    assert_eq!(native, collected);
    let run = unbraid("collect --native --text", &fixture.bytes);
    assert_eq!(run.code, 2);
}

#[test]
fn x04_f12_the_response_of_a_chat_has_the_error_of_a_choice_beside_its_reason() {
    let choice = |index: u32, more: &str| {
        format!(r#"{{"index":{index},"delta":{{"content":"a"}},"finish_reason":"stop"{more}}}"#)
    };
    let failed = choice(1, r#","error":{"message":"no capacity","code":502}"#);
    let stream = format!(
        "data: {{\"choices\":[{},{failed}]}}\n\ndata: [DONE]\n\n",
        choice(0, "")
    );
    let run = unbraid("collect --native", stream.as_bytes());
    let native: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(native["choices"][0].get("error"), None);
    assert_eq!(native["choices"][1]["error"]["code"], 502);
    let again = demux(run.stdout.as_bytes());
    let ends: Vec<_> = again
        .choices()
        .filter_map(|choice| Some(choice.end()?.as_str()))
        .collect();
    assert_eq!(ends, ["finished", "server_error"]);
}

#[test]
fn h06_the_response_of_cohere_has_the_error_beside_the_reason() {
    let run = run_fixture(
        "collect --native",
        &Fixture::named("cohere/cohere-h06-error-reason"),
    );
    let native: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(native["finish_reason"], "ERROR");
    assert!(native["error"].is_string(), "{native:#}");
}

#[test]
fn a_generated_image_of_ollama_stands_outside_a_list() {
    let fixture = Fixture::named("ollama/ollama-generated-image");
    let native = run_fixture("collect --native", &fixture).json();
    assert_eq!(native["image"], "aW1n");
    assert_eq!(native.get("images"), None);
}

#[test]
fn a_citation_before_its_text_is_in_the_same_block() {
    let fixture = Fixture::named("anthropic/anthropic-a22-citation-before-its-text");
    let native = run_fixture("collect --native", &fixture).json();
    let content = native["content"].as_array().unwrap();
    let cited: Vec<bool> = content
        .iter()
        .map(|block| block.get("citations").is_some())
        .collect();
    assert_eq!(cited, [false, false, true], "{native:#}");
    assert_eq!(content[2]["text"], "Found.");
}

#[test]
fn an_anthropic_message_has_its_blocks_in_their_order() {
    let name = "anthropic/anthropic-a02-a05-a15-thinking-text-call";
    let native = run_fixture("collect --native", &Fixture::named(name)).json();
    let content = json!([
        {"type": "thinking", "thinking": "A brief thought.", "signature": "c2ln"},
        {"type": "text", "text": "It rains here."},
        {
            "type": "tool_use",
            "id": "toolu_1",
            "name": "weather",
            "input": {"city": "Oslo"},
            "caller": {"type": "direct"},
        },
    ]);
    assert_eq!(native["content"], content);
    assert_eq!(native["type"], "message");
    assert_eq!(native["stop_reason"], "tool_use");
    assert_eq!(native["stop_sequence"], Value::Null);
    assert_eq!(native["usage"]["output_tokens"], 42);
}

/// The fields of a response that are neither null nor empty, without its time, of which only the seconds are kept.
fn significant(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(key, _)| *key != "created_at");
            let kept = kept.map(|(key, value)| (key, significant(value)));
            let is_empty = |value: &Value| {
                value.is_null() || *value == json!([]) || *value == json!({}) || *value == json!("")
            };
            let kept = kept.filter(|(_, value)| !is_empty(value));
            Value::Object(kept.map(|(key, value)| (key.clone(), value)).collect())
        }
        Value::Array(entries) => entries.iter().map(significant).collect(),
        other => other.clone(),
    }
}

#[test]
fn a_recorded_response_is_its_own_native_form() {
    let Corpus::Streams(streams) = corpus() else {
        println!("skipped: there is no corpus");
        return;
    };
    let (mut checked, mut differences) = (0, Vec::new());
    for (path, bytes) in streams {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let is_body = name.starts_with("body-") && !name.starts_with("body-responses");
        let Ok(body) = serde_json::from_slice::<Value>(&bytes) else {
            continue;
        };
        if !is_body {
            continue;
        }
        checked += 1;
        let native = unbraid("collect --native", &bytes).json();
        let (native, body) = (significant(&native), significant(&body));
        if native != body {
            differences.push(format!("{name}\n{native:#}\n{body:#}"));
        }
    }
    assert!(checked >= 40, "{checked}");
    assert_eq!(
        differences,
        Vec::<String>::new(),
        "{}",
        differences.join("\n")
    );
}

#[test]
fn the_native_response_of_every_recording_is_the_same_answer() {
    let Corpus::Streams(streams) = corpus() else {
        println!("skipped: there is no corpus");
        return;
    };
    let of_dialect = |(path, bytes): (std::path::PathBuf, Vec<u8>)| {
        let dialect = demux(&bytes).metadata().dialect()?;
        let name = path.file_name()?.to_string_lossy().into_owned();
        DIALECTS
            .contains(&dialect.as_str())
            .then_some((name, bytes))
    };
    let streams: Vec<_> = streams.into_iter().filter_map(of_dialect).collect();
    assert!(streams.len() > 150, "{}", streams.len());
    for (name, error) in check_all(&streams) {
        println!("{name}: {error}");
        let has_form = ["arguments of call", "choices", "format of a model"];
        assert!(
            has_form.iter().any(|known| error.contains(known)),
            "{error}"
        );
    }
}
