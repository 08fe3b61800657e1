//! `unbraid split`: one text file a choice, one JSON file a tool call, one summary.

mod new_file;

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use serde_json::{Value, json};
use unbraid_core::{
    CallKind, CallStatus, Config, Demux, Message, Prompt, ToolCall, Transcript, json::Repair,
    parse_json_repaired,
};

use crate::{
    account::Account,
    collect,
    exit::{self, Failure, Status},
    input::Source,
    read::{self, Deaf},
};

pub(crate) fn run(source: &Source, out: &Path, options: Config) -> Result<Status, Failure> {
    let input = exit::open(source)?;
    // Before the stream is read, so that nobody waits for an answer that has nowhere to go.
    fs::create_dir_all(out).map_err(|error| Failure::File {
        path: out.into(),
        error,
    })?;
    let reading = read::read_all(source, input, options, &mut Deaf).map_err(Failure::Output)?;
    let paths = files(&reading.demux, out)?;
    let status = exit::tell(source, &reading.outcome());
    exit::written(list(&paths), status)
}

/// Writes every file; their paths, in the order of the choices.
fn files(demux: &Demux, out: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut choices: Vec<&Transcript> = demux.choices().collect();
    choices.sort_by_key(|choice| choice.index());
    let mut folder = Folder {
        out,
        paths: Vec::new(),
    };
    for choice in choices {
        folder.choice(choice.index().0, &choice.message())?;
    }
    let summary = Account::of_demux(demux, &Prompt::default()).into_json_text();
    folder.json_text("summary.json", &summary)?;
    Ok(folder.paths)
}

fn list(paths: &[PathBuf]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    paths
        .iter()
        .try_for_each(|path| writeln!(stdout, "{}", path.display()))
}

/// The directory that is written into, and what has been written.
struct Folder<'p> {
    out: &'p Path,
    paths: Vec<PathBuf>,
}

impl Folder<'_> {
    fn choice(&mut self, index: u32, message: &Message) -> Result<(), Failure> {
        self.write(&format!("choice-{index}.txt"), message.content.as_bytes())?;
        for (what, text) in [
            ("reasoning", &message.reasoning),
            ("refusal", &message.refusal),
        ] {
            if !text.is_empty() {
                self.write(&format!("choice-{index}.{what}.txt"), text.as_bytes())?;
            }
        }
        for (number, call) in message.tool_calls.iter().enumerate() {
            let mut name = format!("choice-{index}-call-{number}");
            if !call.name.is_empty() {
                name.push('-');
                name.push_str(&harmless(&call.name));
            }
            name.push_str(".json");
            self.json(&name, &description(call))?;
        }
        Ok(())
    }

    fn json(&mut self, name: &str, value: &Value) -> Result<(), Failure> {
        let mut bytes = Vec::new();
        collect::write(value, &mut bytes).map_err(|error| self.failure(name, error))?;
        self.write(name, &bytes)
    }

    fn json_text(&mut self, name: &str, json: &str) -> Result<(), Failure> {
        let mut bytes = Vec::new();
        collect::write_text(json, &mut bytes).map_err(|error| self.failure(name, error))?;
        self.write(name, &bytes)
    }

    fn write(&mut self, name: &str, bytes: &[u8]) -> Result<(), Failure> {
        new_file::write(self.out, name, bytes).map_err(|error| self.failure(name, error))?;
        self.paths.push(self.out.join(name));
        Ok(())
    }

    fn failure(&self, name: &str, error: io::Error) -> Failure {
        Failure::File {
            path: self.out.join(name),
            error,
        }
    }
}

fn description(call: &ToolCall) -> Value {
    json!({
        "index": call.wire_index,
        "id": call.id.as_deref(),
        "type": call.kind.as_str(),
        "name": *call.name,
        "arguments": call.arguments,
        "value": value(call),
        "status": call.status.map(CallStatus::as_str),
        "error": call.problem(),
    })
}

/// The arguments as a value, read as the call's status says; `null` where they are none.
fn value(call: &ToolCall) -> Value {
    if call.kind == CallKind::Custom {
        return Value::Null;
    }
    parse_json_repaired(&call.arguments, Repair::default()).unwrap_or(Value::Null)
}

/// Bytes of a tool's name that a file's name keeps; with what stands around it, far below any system's limit.
const NAME_BYTES: usize = 64;

/// A tool's name as part of a file's: no separator, nothing that a shell or a system takes for more than a letter.
fn harmless(name: &str) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-') {
            c
        } else {
            '_'
        }
    };
    name.chars().map(plain).take(NAME_BYTES).collect()
}

#[cfg(test)]
mod tests {
    use super::harmless;

    #[test]
    fn names_never_leave_their_directory() {
        assert_eq!(harmless("get_weather"), "get_weather");
        assert_eq!(harmless("../../x"), ".._.._x");
        assert_eq!(harmless("a\\b:c\0d é"), "a_b_c_d__");
        assert_eq!(harmless(&"x".repeat(200)).len(), 64);
    }
}
