//! `--run-tool`: programs that run the calls of a model.

mod definitions;
mod program;
mod script;
mod terminal;

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use serde_json::Value;
use unbraid::{
    Choice,
    tools::{RunLimits, ToolResult, Tools, run_calls},
};
use unbraid_core::{ChoiceEnd, ChoiceOutcome, StreamError, ToolCall, tool_names};

pub(super) use self::definitions::read_tools;
use self::{program::Program, terminal::Terminal};
use crate::{
    exit::Failure,
    outcome::{is_finished, list},
    output::print_error,
    printable::printable,
};

const HEADING: &str = "Tools";

/// How many characters of a result are shown. The model reads all of it.
const MAX_SHOWN_CHARS: usize = 300;

/// Selects the programs, and how they are run.
#[derive(Debug, clap::Args)]
pub(super) struct RunToolArgs {
    /// Run a program for the calls of a tool, and send its output back to the model; it reads the arguments from its
    /// standard input
    #[arg(
        long = "run-tool",
        help_heading = HEADING,
        value_name = "NAME=PROGRAM",
        value_parser = name_and_program,
        conflicts_with_all = ["take", "stay"]
    )]
    run_tool: Vec<(String, PathBuf)>,
    /// Run the programs at once, without asking first
    #[arg(long, help_heading = HEADING, requires = "run_tool")]
    yes: bool,
    /// How many requests are sent at most
    #[arg(
        long,
        help_heading = HEADING,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..),
        default_value_t = 5,
        requires = "run_tool"
    )]
    max_turns: u32,
    /// How long a program may run
    #[arg(
        long,
        help_heading = HEADING,
        value_name = "SECONDS",
        value_parser = super::provider::seconds,
        default_value = "60",
        requires = "run_tool"
    )]
    tool_timeout: Duration,
}

impl RunToolArgs {
    /// Checks the arguments against the request, and opens the terminal for questions; `None` if no calls are to be run.
    pub(super) fn runner(&self, body: &Value, choices: u32) -> Result<Option<Runner>, Failure> {
        if self.run_tool.is_empty() {
            return Ok(None);
        }
        if body.get("prompt").is_some() && body.get("messages").is_none() {
            return usage("--run-tool is for chats, but the request has a prompt");
        }
        if choices > 1 {
            return usage("--run-tool continues one choice, but the request asks for several");
        }
        let declared = tool_names(body);
        for (name, path) in &self.run_tool {
            check_name(name, &declared, &self.run_tool)?;
            check_program(name, path)?;
        }
        let terminal = if self.yes {
            None
        } else if let Ok(terminal) = Terminal::open() {
            Some(Arc::new(terminal))
        } else {
            return usage(
                "--run-tool asks on the terminal before it runs a program, and there is no terminal: --yes runs it at once",
            );
        };
        let mut tools = Tools::new();
        for (name, path) in &self.run_tool {
            let program = Program {
                name: name.clone(),
                path: path.clone(),
                timeout: self.tool_timeout,
                terminal: terminal.clone(),
            };
            tools.add(program.into_tool(definitions::is_custom(body, name)));
        }
        // The programs have a timeout of their own, which does not include the question before.
        let limits = RunLimits::default().with_timeout(None);
        let limits = if self.yes {
            limits
        } else {
            limits.with_concurrency(1)
        };
        Ok(Some(Runner {
            tools,
            declared,
            limits,
            max_turns: self.max_turns,
        }))
    }
}

/// Runs the calls of answers.
#[derive(Debug)]
pub(super) struct Runner {
    tools: Tools,
    /// The names of all tools of the request, also of those without a program.
    declared: Vec<Arc<str>>,
    limits: RunLimits,
    pub(super) max_turns: u32,
}

impl Runner {
    /// The choice of an answer whose calls are to be run. An answer that did not finish has none, nor has one with a call of
    /// a tool without a program: the caller of the command runs that, and so has to send the next request.
    pub(super) fn runnable<'c>(
        &self,
        closed: &Result<(), StreamError>,
        choices: &'c [ChoiceOutcome],
    ) -> Option<&'c ChoiceOutcome> {
        let choice = choices.first()?;
        let is_complete = closed.is_ok()
            && choices.iter().all(|choice| is_finished(&choice.end))
            && !is_cut(&choice.end);
        let calls = &choice.message.tool_calls;
        let is_runnable = |call: &ToolCall| {
            let is_declared = self.declared.contains(&call.name);
            !is_declared || self.tools.get(&call.name).is_some()
        };
        (is_complete && !calls.is_empty() && calls.iter().all(is_runnable)).then_some(choice)
    }

    /// Runs the calls of a choice that is over, and shows the results.
    pub(super) async fn run(&self, choice: &Choice) -> Vec<ToolResult> {
        let results = run_calls(choice, &self.tools, self.limits).await;
        for result in &results {
            let name = printable(&result.call.name);
            let text = shown(&result.text());
            print_error(format_args!("unbraid: result of {name}: {text}"));
        }
        results
    }
}

/// Whether a choice has calls that are not run because the answer was cut.
pub(super) fn has_cut_calls(choice: &ChoiceOutcome) -> bool {
    is_cut(&choice.end) && !choice.message.tool_calls.is_empty()
}

fn is_cut(end: &ChoiceEnd) -> bool {
    // By its class: each provider has its own words, such as Anthropic's `max_tokens`.
    matches!(end, ChoiceEnd::Finished(reason) if reason.class().is_cut())
}

/// The beginning of a text, in one line.
fn shown(text: &str) -> String {
    match text.char_indices().nth(MAX_SHOWN_CHARS) {
        Some((end, _)) => format!(
            "{}.. ({} bytes)",
            printable(text.get(..end).unwrap_or(text)),
            text.len()
        ),
        None => printable(text),
    }
}

fn check_name(
    name: &str,
    declared: &[Arc<str>],
    programs: &[(String, PathBuf)],
) -> Result<(), Failure> {
    if !declared.iter().any(|known| **known == *name) {
        let name = printable(name);
        let known = match list(declared, |name| printable(name)) {
            known if known.is_empty() => "--tools has the tools of the request".to_owned(),
            known => format!("it has {known}"),
        };
        return usage(&format!(
            "--run-tool {name}: the request has no tool of this name; {known}"
        ));
    }
    match programs.iter().filter(|(other, _)| other == name).count() {
        1 => Ok(()),
        _ => usage(&format!(
            "--run-tool {}: the tool has several programs",
            printable(name)
        )),
    }
}

/// Reports a wrong path before a request is paid for. A name without a slash is found in `PATH` when it is run.
fn check_program(name: &str, path: &Path) -> Result<(), Failure> {
    let has_directory = path.parent().is_some_and(|parent| parent != Path::new(""));
    let problem = match fs::metadata(path) {
        _ if !has_directory => return Ok(()),
        Ok(metadata) if !metadata.is_file() => "not a file".to_owned(),
        Ok(metadata) if !is_executable(&metadata) => "not executable".to_owned(),
        Ok(_) => return Ok(()),
        Err(error) => error.to_string(),
    };
    let (name, path) = (printable(name), printable(&path.to_string_lossy()));
    usage(&format!("--run-tool {name}: {path}: {problem}"))
}

#[cfg(unix)]
fn is_executable(metadata: &fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    metadata.permissions().mode() & 0o111 != 0
}

#[cfg(not(unix))]
fn is_executable(_: &fs::Metadata) -> bool {
    true
}

fn name_and_program(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, program)) if !name.is_empty() && !program.is_empty() => {
            Ok((name.to_owned(), program.into()))
        }
        _ => Err("expected the name of a tool, =, and a program".to_owned()),
    }
}

fn usage<T>(message: &str) -> Result<T, Failure> {
    Err(Failure::Usage(message.to_owned()))
}
