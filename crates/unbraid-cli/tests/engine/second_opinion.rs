//! The same bytes read by OpenAI's own library for Python, which shares no code with us.

use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use serde_json::{Value, json};
use unbraid_testkit::fixture::{Fixture, workspace_root};

use crate::{
    UNBRAID,
    answer::{self, Answer},
    engine,
    recording::{self, Recording},
};

/// The library, in a process of its own. Dropped, it ends with its standard input.
struct Sdk {
    child: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Sdk {
    fn start() -> Option<Self> {
        let mut child = Command::new(engine::python()?)
            .args(["-W", "ignore"])
            .arg(workspace_root().join("tests/engine/sdk.py"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let questions = child.stdin.take().expect("piped");
        let answers = BufReader::new(child.stdout.take().expect("piped"));
        Some(Self {
            child,
            questions,
            answers,
        })
    }

    /// What it makes of a file, or of what a server streams; the error that it dies of, otherwise.
    fn reads(&mut self, chat: bool, request: &Value, source: &str) -> Result<Value, String> {
        let kind = if chat { "chat" } else { "text" };
        let question = json!({ "kind": kind, "request": request, "source": source });
        writeln!(self.questions, "{question}").unwrap();
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        // It may have read a `NaN`, which is no JSON.
        let response: Value = serde_json::from_str(&line).map_err(|error| error.to_string())?;
        match response["died"].as_str() {
            Some(died) => Err(died.to_owned()),
            None => Ok(response),
        }
    }

    fn hears(&mut self, recording: &Recording, source: &str) -> Answer {
        let case = &recording.case;
        let response = self.reads(case.is_chat(), &case.request, source);
        answer::of_response(&response.unwrap_or_else(|died| panic!("{}: {died}", case.name)))
    }
}

impl Drop for Sdk {
    fn drop(&mut self) {
        let _dead: std::io::Result<()> = self.child.kill();
        let _dead: std::io::Result<_> = self.child.wait();
    }
}

/// What `unbraid collect` makes of a file, whether or not that ends well.
fn collected(file: &Path) -> Value {
    let output = Command::new(UNBRAID).arg("collect").arg(file).output();
    let output = output.unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
}

/// Fixtures that both read to their end, and not alike. Whatever is new here needs a reason.
const DIFFERENT: [&str; 10] = [
    // A name in pieces, in whole again, or of several calls under one index: it adds them all up.
    "openai_chat/bridge-t02-orphan-fragments",
    "openai_chat/bridge-t17-cumulative-name",
    "openai_chat/gemini-t07-t40-parallel-calls",
    "openai_chat/ollama-f01-f08-t07-calls",
    // Arguments and reasons that are no text stay what they were.
    "openai_chat/llamacpp-t20-arguments-as-object",
    "openai_chat/nim-seven-choices-f13-stop-reason",
    "openai_chat/proxy-f13-f05-odd-finish-reasons",
    // Its first event is lost to a byte order mark.
    "openai_chat/dotnet-s17-byte-order-mark",
    // The last reason counts, not the first; `text`, not the delta.
    "openai_chat/sglang-f04-f05-finish-twice",
    "openai_text/together-c19-text-and-delta",
];

#[test]
fn the_library_of_openai_reads_the_same_choices() {
    let Some(recordings) = recording::all() else {
        return;
    };
    let Some(mut sdk) = Sdk::start() else { return };
    for recording in recordings {
        let name = &recording.case.name;
        let theirs = sdk.hears(recording, recording.file.to_str().unwrap());
        let ours = answer::of_response(&collected(&recording.file));
        assert_eq!(ours, theirs, "{name}");
        assert_eq!(ours, recording.answer, "{name}");
    }
}

#[test]
fn the_library_of_openai_reads_replays() {
    let Some(recordings) = recording::all() else {
        return;
    };
    let Some(mut sdk) = Sdk::start() else { return };
    for recording in recordings.iter().step_by(5) {
        let server = recording::replay(recording, &[]);
        let theirs = sdk.hears(recording, &server.base_url);
        assert_eq!(theirs, recording.answer, "{}", recording.case.name);
    }
}

#[test]
fn the_library_of_openai_reads_fixtures_alike_unless_a_reason_is_known() {
    let Some(mut sdk) = Sdk::start() else { return };
    let (mut alike, mut different) = (0, Vec::new());
    for fixture in Fixture::all() {
        let chat = match fixture.dialect() {
            "openai_chat" => true,
            "openai_text" => false,
            _ => continue, // what is broken on purpose
        };
        let Ok(theirs) = sdk.reads(chat, &json!({}), fixture.path.to_str().unwrap()) else {
            continue;
        };
        if outline(&theirs) == outline(&collected(&fixture.path)) {
            alike += 1;
        } else {
            different.push(fixture.name);
        }
    }
    different.sort_unstable();
    let mut expected = DIFFERENT;
    expected.sort_unstable();
    assert_eq!(different, expected);
    assert!(alike >= 100, "it reads only {alike} as we do");
}

/// What both libraries tell of a choice, as it stands: theirs need not be of the right type.
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
