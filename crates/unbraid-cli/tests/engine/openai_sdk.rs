//! Compares unbraid with OpenAI's own Python library, which shares no code with it.

use std::{path::Path, process::Command};

use serde_json::{Value, json};
use unbraid_testkit::fixture::Fixture;

use crate::{
    UNBRAID,
    answer::{self, Answer},
    python::Script,
    recording::{self, Recording},
};

/// The library in a separate process. Dropping it kills the process.
struct Sdk(Script);

impl Sdk {
    fn start() -> Option<Self> {
        Script::start("sdk.py").map(Self)
    }

    /// The response that the library reads from a file or a server, or its exception.
    fn read(&mut self, chat: bool, request: &Value, source: &str) -> Result<Value, String> {
        let kind = if chat { "chat" } else { "text" };
        let question = json!({ "kind": kind, "request": request, "source": source });
        let line = self.0.ask(&question);
        // The library may have read a `NaN`, which is not JSON.
        let response: Value = serde_json::from_str(&line).map_err(|error| error.to_string())?;
        match response["died"].as_str() {
            Some(error) => Err(error.to_owned()),
            None => Ok(response),
        }
    }

    fn read_answer(&mut self, recording: &Recording, source: &str) -> Answer {
        let case = &recording.case;
        let response = self.read(case.is_chat(), &case.request, source);
        answer::from_response(&response.unwrap_or_else(|error| panic!("{}: {error}", case.name)))
    }
}

/// The response that `unbraid collect` prints for a file, with any exit code.
fn collect(file: &Path) -> Value {
    let output = Command::new(UNBRAID).arg("collect").arg(file).output();
    let output = output.unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
}

/// Fixtures that both read to the end with different results. Each needs a reason.
const DIFFERENT: [&str; 14] = [
    // A name in parts, a repeated name, or several calls under one index: the library concatenates all of them.
    "openai_chat/bridge-t02-orphan-fragments",
    "openai_chat/bridge-t17-cumulative-name",
    "openai_chat/bridge-t17-t28-t31-interleaved-custom-tools",
    "openai_chat/gemini-t07-t40-parallel-calls",
    "openai_chat/ollama-f01-f08-t07-calls",
    // The library keeps arguments and finish reasons that are not strings.
    "openai_chat/gateway-f01-f13-empty-finish-reasons",
    "openai_chat/llamacpp-t20-arguments-as-object",
    "openai_chat/nim-seven-choices-f13-stop-reason",
    "openai_chat/proxy-f13-f05-odd-finish-reasons",
    // The library keeps the empty function of a custom call, and has no arguments where none were sent.
    "openai_chat/gateway-t31-empty-custom-beside-function",
    "openai_chat/litellm-t40-fields-inside-a-function",
    // The library loses the first event because of a byte order mark.
    "openai_chat/dotnet-s17-byte-order-mark",
    // The library takes the last finish reason instead of the first, and `text` instead of the delta.
    "openai_chat/sglang-f04-f05-finish-twice",
    "openai_text/together-c19-text-and-delta",
];

#[test]
fn the_openai_library_reads_the_same_choices() {
    let Some(recordings) = recording::all() else {
        return;
    };
    let Some(mut sdk) = Sdk::start() else { return };
    for recording in recordings {
        let name = &recording.case.name;
        let theirs = sdk.read_answer(recording, recording.file.to_str().unwrap());
        let ours = answer::from_response(&collect(&recording.file));
        assert_eq!(ours, theirs, "{name}");
        assert_eq!(ours, recording.answer, "{name}");
    }
}

#[test]
fn the_openai_library_reads_replays() {
    let Some(recordings) = recording::all() else {
        return;
    };
    let Some(mut sdk) = Sdk::start() else { return };
    for recording in recordings.iter().step_by(5) {
        let server = recording::replay(recording, &[]);
        let theirs = sdk.read_answer(recording, &server.base_url);
        assert_eq!(theirs, recording.answer, "{}", recording.case.name);
    }
}

#[test]
fn the_openai_library_reads_fixtures_equally_except_for_known_reasons() {
    let Some(mut sdk) = Sdk::start() else { return };
    let (mut equal_count, mut different) = (0, Vec::new());
    for fixture in Fixture::all() {
        let chat = match fixture.dialect() {
            "openai_chat" => true,
            "openai_text" => false,
            _ => continue, // broken on purpose
        };
        let Ok(theirs) = sdk.read(chat, &json!({}), fixture.path.to_str().unwrap()) else {
            continue;
        };
        if outline(&theirs) == outline(&collect(&fixture.path)) {
            equal_count += 1;
        } else {
            different.push(fixture.name);
        }
    }
    different.sort_unstable();
    let mut expected = DIFFERENT;
    expected.sort_unstable();
    assert_eq!(different, expected);
    assert!(equal_count >= 100, "only {equal_count} are read equally");
}

/// The fields of each choice that both libraries have. In the library's response, their types may be wrong.
fn outline(response: &Value) -> Vec<Value> {
    let choices = response["choices"].as_array().into_iter().flatten();
    choices
        .map(|choice| {
            let message = choice.get("message").unwrap_or(choice);
            let text = message.get("content").or_else(|| message.get("text"));
            let text = text.and_then(Value::as_str).unwrap_or_default();
            let calls = message["tool_calls"].as_array().into_iter().flatten();
            let calls: Vec<&Value> = calls.map(|call| &call["function"]).collect();
            let calls: Vec<_> = calls
                .iter()
                .map(|f| [&f["name"], &f["arguments"]])
                .collect();
            json!([choice["index"], text, calls, choice["finish_reason"]])
        })
        .collect()
}
