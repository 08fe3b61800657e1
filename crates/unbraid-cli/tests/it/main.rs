//! End-to-end tests of the command: its output, its files and its exit codes.
#![cfg(test)]

mod bad_input;
mod chat;
mod collect;
mod command_line;
mod demo;
mod dialects;
mod documentation;
mod events;
mod every_fixture;
#[cfg(unix)]
mod examples;
mod generate;
mod gzip;
#[cfg(unix)]
mod live;
mod native;
mod pipes;
mod replay;
#[cfg(unix)]
mod rolling;
mod serve;
mod split;
mod split_think;
mod stats;
mod text;
mod tokens;
mod verbatim;
mod watch;

use std::{process::Output, time::Duration};

use assert_cmd::Command;
use serde_json::Value;
use unbraid_testkit::fixture::{Fixture, SplitThink};

/// The binary under test.
const UNBRAID: &str = env!("CARGO_BIN_EXE_unbraid");

/// The limit for one run, far longer than any run takes. It turns a hang into a failure.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The result of a run.
struct Run {
    code: i32,
    stdout: String,
    stderr: String,
}

impl Run {
    fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}{}", self.stdout, self.stderr))
    }

    fn lines(&self) -> Vec<Value> {
        let parse = |line| serde_json::from_str(line).unwrap();
        self.stdout.lines().map(parse).collect()
    }
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().expect("no signal"),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// Runs `unbraid <args>` with this standard input.
fn unbraid(args: &str, stdin: &[u8]) -> Run {
    let mut command = Command::new(UNBRAID);
    command
        .args(args.split_whitespace())
        .write_stdin(stdin)
        .timeout(TIMEOUT);
    command.output().unwrap().into()
}

/// Whether text or calls arrived after the end of their choice, which a collected response says in a warning.
fn has_late_text(collected: &Value) -> bool {
    let warnings = collected["unbraid"]["warnings"].as_array();
    warnings.is_some_and(|warnings| warnings.iter().any(|warning| warning["code"] == "F6"))
}

/// Runs a command with the bytes and the options of a fixture.
fn run_fixture(args: &str, fixture: &Fixture) -> Run {
    unbraid(&format!("{args} {}", flags(fixture)), &fixture.bytes)
}

fn collect(name: &str) -> Run {
    run_fixture("collect", &Fixture::named(name))
}

fn flags(fixture: &Fixture) -> String {
    let mut flags = String::new();
    if let Some(n) = fixture.options.expect_choices {
        flags = format!("--expect-choices {n}");
    }
    if fixture.options.strict {
        flags.push_str(" --strict");
    }
    flags.push_str(match fixture.options.split_think {
        SplitThink::Never => "",
        SplitThink::AtTag => " --split-think",
        SplitThink::AtStart => " --split-think=start",
    });
    if fixture.options.usage_after_done {
        flags.push_str(" --usage-after-done");
    }
    if let Some(keys) = &fixture.options.reasoning_keys {
        flags.push_str(" --reasoning-keys ");
        flags.push_str(&keys.join(","));
    }
    flags
}
