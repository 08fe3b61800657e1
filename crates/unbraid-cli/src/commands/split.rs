//! `unbraid split`: writes a text file for each choice, a JSON file for each tool call, and a summary.

mod new_file;

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use clap::ValueHint;
use serde_json::{Value, json};
use unbraid_core::{
    CallKind, CallStatus, Demux, Message, Prompt, ToolCall, Transcript, json::Repair,
    parse_json_repaired,
};

use crate::{
    args::{self, StreamArgs, UsageArgs, UsageMode},
    exit::{Failure, Status, status_after_output},
    input::{Input, NullListener, read_all},
    json,
    output::print_error,
    report::Report,
};

pub(super) const EXAMPLES: &str = "\
Examples:
  unbraid split --out answers answer.sse
  curl -sN .. | unbraid split --out answers && cat answers/choice-0.txt";

#[derive(Debug, clap::Args)]
pub(super) struct SplitArgs {
    /// The directory to write into; it is created if it does not exist
    #[arg(long, value_name = "DIR", value_parser = clap::value_parser!(PathBuf), value_hint = ValueHint::DirPath)]
    out: PathBuf,
    #[command(flatten)]
    usage: UsageArgs,
    /// The recorded stream, or `-` for the standard input
    #[arg(default_value = "-", value_parser = args::input(), value_hint = ValueHint::FilePath)]
    file: Input,
}

pub(super) fn run(args: &SplitArgs, stream: &StreamArgs) -> Result<Status, Failure> {
    let input = args.file.open()?;
    // The directory is created before the stream is read, so that a failure does not cost the time and tokens of an answer.
    fs::create_dir_all(&args.out).map_err(|error| Failure::File {
        path: args.out.clone(),
        error,
    })?;
    let result = read_all(&args.file, input, stream.config(), &mut NullListener);
    let result = result.map_err(Failure::Output)?;
    let usage = args.usage.mode(UsageMode::Reported);
    let dir = write_files(&result.demux, &args.out, usage);
    let status = result.outcome().print_diagnostics(&args.file);
    let printed = print_paths(&dir.written);
    dir.check_failures()?;
    status_after_output(printed, status)
}

/// Writes every file that can be written, in the order of the choices. The answer may have cost tokens, so one file that cannot
/// be written does not cost the others.
fn write_files<'p>(demux: &Demux, out: &'p Path, usage: UsageMode) -> OutputDir<'p> {
    let mut choices: Vec<&Transcript> = demux.choices().collect();
    choices.sort_by_key(|choice| choice.index());
    let mut dir = OutputDir {
        path: out,
        written: Vec::new(),
        failures: Vec::new(),
    };
    for choice in choices {
        dir.write_choice(choice.index().0, &choice.message());
    }
    let summary = Report::from_demux(demux, &Prompt::default(), usage);
    dir.write_report("summary.json", &summary);
    dir
}

fn print_paths(paths: &[PathBuf]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    paths
        .iter()
        .try_for_each(|path| writeln!(stdout, "{}", path.display()))
}

/// The output directory, the files written into it, and the failures of the others.
struct OutputDir<'p> {
    path: &'p Path,
    written: Vec<PathBuf>,
    failures: Vec<Failure>,
}

impl OutputDir<'_> {
    fn write_choice(&mut self, index: u32, message: &Message) {
        self.write(&format!("choice-{index}.txt"), message.content.as_bytes());
        for (suffix, text) in [
            ("reasoning", &message.reasoning),
            ("refusal", &message.refusal),
        ] {
            if !text.is_empty() {
                self.write(&format!("choice-{index}.{suffix}.txt"), text.as_bytes());
            }
        }
        for (position, call) in message.tool_calls.iter().enumerate() {
            let mut name = format!("choice-{index}-call-{position}");
            if !call.name.is_empty() {
                name.push('-');
                name.push_str(&safe_file_name(&call.name));
            }
            name.push_str(".json");
            self.write_json(&name, &call_json(call));
        }
    }

    fn write_json(&mut self, name: &str, value: &Value) {
        let mut bytes = Vec::new();
        let encoded = json::write_value(value, &mut bytes);
        self.write_encoded(name, encoded.map(|()| bytes));
    }

    fn write_report(&mut self, name: &str, report: &Report<'_>) {
        let mut bytes = Vec::new();
        let encoded = json::write_text(&mut bytes, |out| report.write(out));
        self.write_encoded(name, encoded.map(|()| bytes));
    }

    fn write(&mut self, name: &str, bytes: &[u8]) {
        let written = new_file::write(self.path, name, bytes);
        self.add(name, written);
    }

    fn write_encoded(&mut self, name: &str, bytes: io::Result<Vec<u8>>) {
        let written = bytes.and_then(|bytes| new_file::write(self.path, name, &bytes));
        self.add(name, written);
    }

    fn add(&mut self, name: &str, written: io::Result<()>) {
        let path = self.path.join(name);
        match written {
            Ok(()) => self.written.push(path),
            Err(error) => self.failures.push(Failure::File { path, error }),
        }
    }

    /// Prints all failures but the last, and returns that one.
    fn check_failures(mut self) -> Result<(), Failure> {
        let Some(last) = self.failures.pop() else {
            return Ok(());
        };
        for failure in self.failures {
            print_error(format_args!("unbraid: {failure}"));
        }
        Err(last)
    }
}

fn call_json(call: &ToolCall) -> Value {
    json!({
        "index": call.wire_index,
        "id": call.id.as_deref(),
        "type": call.kind.as_str(),
        "name": *call.name,
        "arguments": call.arguments,
        "value": arguments_value(call),
        "status": call.status.map(CallStatus::as_str),
        "error": call.problem(),
    })
}

/// Parses the arguments, with the repairs that the call's status names. Returns `null` if they are not JSON.
fn arguments_value(call: &ToolCall) -> Value {
    if call.kind == CallKind::Custom {
        return Value::Null;
    }
    let is_empty = call.arguments.trim().is_empty() && call.status != Some(CallStatus::Truncated);
    let arguments = if is_empty { "{}" } else { &call.arguments }; // T23
    parse_json_repaired(arguments, Repair::default()).unwrap_or(Value::Null)
}

/// How much of a tool's name a file name keeps. With the rest of the file name, this is far below the limit of any system.
const NAME_BYTES: usize = 64;

/// Converts a tool's name to a part of a file name, without path separators and without characters that are special to a
/// shell or a file system.
fn safe_file_name(name: &str) -> String {
    let replace = |c: char| {
        if c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-') {
            c
        } else {
            '_'
        }
    };
    name.chars().map(replace).take(NAME_BYTES).collect()
}

#[cfg(test)]
mod tests {
    use super::safe_file_name;

    #[test]
    fn names_never_leave_their_directory() {
        assert_eq!(safe_file_name("get_weather"), "get_weather");
        assert_eq!(safe_file_name("../../x"), ".._.._x");
        assert_eq!(safe_file_name("a\\b:c\0d é"), "a_b_c_d__");
        assert_eq!(safe_file_name(&"x".repeat(200)).len(), 64);
    }
}
