//! A Python script in a process of its own, which answers each line with a line.

use std::{
    io::{self, BufRead, BufReader, Write},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use serde_json::Value;
use unbraid_testkit::fixture::workspace_root;

use crate::engine;

/// The process. Dropping it kills it.
pub(crate) struct Script {
    child: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Script {
    /// Starts a script of `tests/engine` in the prepared environment; `None` without one.
    pub(crate) fn start(name: &str) -> Option<Self> {
        let mut child = Command::new(engine::python()?)
            .args(["-W", "ignore"])
            .arg(workspace_root().join("tests/engine").join(name))
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

    /// The line that answers a question; empty if the script has ended.
    pub(crate) fn ask(&mut self, question: &Value) -> String {
        writeln!(self.questions, "{question}").unwrap();
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        line
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        let _dead: io::Result<()> = self.child.kill();
        let _dead: io::Result<_> = self.child.wait();
    }
}
