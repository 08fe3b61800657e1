//! The same bytes read by OpenAI's own library for Python, which shares no code with us.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use serde_json::{Value, json};
use unbraid_testkit::fixture::workspace_root;

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

    /// What it makes of a file, or of what a server streams.
    fn reads(&mut self, recording: &Recording, source: &str) -> Answer {
        let case = &recording.case;
        let kind = if case.is_chat() { "chat" } else { "text" };
        let question = json!({ "kind": kind, "request": case.request, "source": source });
        writeln!(self.questions, "{question}").unwrap();
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        let response: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(response["died"], Value::Null, "{}", case.name);
        answer::of_response(&response)
    }
}

impl Drop for Sdk {
    fn drop(&mut self) {
        let _dead: std::io::Result<()> = self.child.kill();
        let _dead: std::io::Result<_> = self.child.wait();
    }
}

/// What `unbraid collect` makes of a file.
fn collected(recording: &Recording) -> Answer {
    let output = Command::new(UNBRAID)
        .arg("collect")
        .arg(&recording.file)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}: {output:?}",
        recording.case.name
    );
    answer::of_response(&serde_json::from_slice(&output.stdout).unwrap())
}

#[test]
fn the_library_of_openai_reads_the_same_choices() {
    let Some(recordings) = recording::all() else {
        return;
    };
    let Some(mut sdk) = Sdk::start() else { return };
    for recording in recordings {
        let name = &recording.case.name;
        let theirs = sdk.reads(recording, recording.file.to_str().unwrap());
        let ours = collected(recording);
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
        let server = recording::replay(recording);
        let theirs = sdk.reads(recording, &server.base_url);
        assert_eq!(theirs, recording.answer, "{}", recording.case.name);
    }
}
