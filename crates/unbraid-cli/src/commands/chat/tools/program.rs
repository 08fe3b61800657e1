//! A program as a tool: asks before it runs, and explains to the user and to the model what went wrong.

use std::{path::PathBuf, sync::Arc, time::Duration};

use serde_json::{Value, value::RawValue};
use unbraid::tools::{Tool, VisibleError};

use super::{
    script::{self, MAX_OUTPUT, Problem, ScriptError},
    shown,
    terminal::Terminal,
};
use crate::{output::print_error, printable::printable};

/// How many lines of a failed program's standard error are shown.
const MAX_ERROR_LINES: usize = 5;

/// A program that runs the calls of one tool.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) name: String,
    pub(super) path: PathBuf,
    pub(super) timeout: Duration,
    /// Where the user is asked before each run; `None` if nobody is asked.
    pub(super) terminal: Option<Arc<Terminal>>,
}

impl Program {
    /// The tool whose calls the program runs. The request has its description and its schema.
    pub(super) fn into_tool(self, is_custom: bool) -> Tool {
        let name = self.name.clone();
        let program = Arc::new(self);
        if is_custom {
            return Tool::custom(name, "", move |input: String| {
                Arc::clone(&program).run(input)
            });
        }
        // A raw value keeps the digits of numbers.
        Tool::new(name, "", Value::Null, move |arguments: Box<RawValue>| {
            Arc::clone(&program).run(arguments.get().to_owned())
        })
    }

    async fn run(self: Arc<Self>, input: String) -> Result<String, VisibleError> {
        let name = printable(&self.name);
        match &self.terminal {
            Some(terminal) => {
                // In full: nobody can agree to arguments that are not shown.
                let question = format!("run {name} {}?", printable(&input));
                if !terminal.confirm(question).await {
                    return Err(VisibleError::new("the user declined"));
                }
            }
            None => print_error(format_args!("unbraid: call of {name}: {}", shown(&input))),
        }
        let run = script::run(&self.path, &input, self.timeout).await;
        run.map_err(|error| self.explain(&error))
    }

    /// Shows the user why the program failed, and returns what the model reads. That contains nothing the program wrote to its
    /// standard error, which may hold paths or keys.
    fn explain(&self, error: &ScriptError) -> VisibleError {
        let (name, path) = (
            printable(&self.name),
            printable(&self.path.to_string_lossy()),
        );
        let for_model = match &error.problem {
            Problem::Io(cause) => {
                print_error(format_args!("unbraid: {name}: {path}: {cause}"));
                "the tool could not be run".to_owned()
            }
            Problem::Status(status) => match status.code() {
                Some(code) => format!("the tool failed with exit code {code}"),
                None => "the tool was ended by a signal".to_owned(),
            },
            Problem::TooLong => format!("the output of the tool exceeds {MAX_OUTPUT} bytes"),
            Problem::TimedOut => format!("the tool did not end within {:?}", self.timeout),
        };
        let lines = String::from_utf8_lossy(&error.stderr);
        for line in lines.lines().take(MAX_ERROR_LINES) {
            print_error(format_args!("unbraid: {name}: {}", shown(line)));
        }
        VisibleError::new(for_model)
    }
}
