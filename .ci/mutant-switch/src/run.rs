//! Runs a test binary with one mutant switched on.
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, SystemTime};

use crate::tree::{Failure, Tests};

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    Caught,
    TimedOut,
    Unviable,
    NotSwitched,
    Survived,
}

impl Outcome {
    pub const ALL: [Self; 5] = [
        Self::Caught,
        Self::TimedOut,
        Self::Unviable,
        Self::NotSwitched,
        Self::Survived,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Caught => "caught",
            Self::TimedOut => "timed-out",
            Self::Unviable => "unviable",
            Self::NotSwitched => "not-switched",
            Self::Survived => "survived",
        }
    }
}

/// A test binary that passes without a mutant.
pub struct Suite {
    tests: Tests,
    pub takes: Duration,
}

impl Suite {
    /// Runs the tests without a mutant, which must pass.
    pub fn time(tests: Tests) -> Result<Self, Failure> {
        let mut suite = Self {
            tests,
            takes: Duration::ZERO,
        };
        let began = SystemTime::now();
        let (outcome, test) = suite.run(None, &[], Duration::from_secs(600))?;
        if outcome != Outcome::Survived {
            return Err(format!("{} fails without a mutant: {test}", suite.tests.name).into());
        }
        suite.takes = began.elapsed()?;
        println!(
            "{} takes {:.1} s",
            suite.tests.name,
            suite.takes.as_secs_f32()
        );
        Ok(suite)
    }

    pub fn is_of(&self, package: &str) -> bool {
        self.tests.directory.ends_with(package)
    }

    /// What became of the mutant, and the test that caught it.
    ///
    /// A test that fails is run again on its own: on a busy machine one that measures time may fail without a mutant.
    pub fn try_mutant(&self, mutant: usize) -> Result<(Outcome, String), Failure> {
        let limit = (self.takes * 8).max(Duration::from_secs(20));
        let mut arguments = Vec::new();
        loop {
            let (outcome, test) = self.run(Some(mutant), &arguments, limit)?;
            let confirmed = outcome != Outcome::Caught
                || test.is_empty()
                || self
                    .run(Some(mutant), &[&test, "--exact"].map(str::to_owned), limit)?
                    .0
                    != Outcome::Survived;
            if confirmed {
                return Ok((outcome, test));
            }
            arguments.extend(["--skip".to_owned(), test]);
        }
    }

    /// The first test that fails ends the run. If the process dies, that is no test's name.
    fn run(
        &self,
        mutant: Option<usize>,
        arguments: &[String],
        limit: Duration,
    ) -> Result<(Outcome, String), Failure> {
        let mut command = Command::new("bash");
        // A mutant that eats memory must not take the machine's. Where there is no such limit, there is none.
        command
            .args(["-c", r#"ulimit -v 4194304 2>/dev/null; exec "$0" "$@""#])
            .arg(&self.tests.program);
        command
            .args(arguments)
            .current_dir(&self.tests.directory)
            .env("CARGO_MANIFEST_DIR", &self.tests.directory);
        command
            .env("RUST_BACKTRACE", "0")
            .env("PROPTEST_MAX_SHRINK_ITERS", "0");
        match mutant {
            Some(number) => command.env("UNBRAID_MUTANT", number.to_string()),
            None => command.env_remove("UNBRAID_MUTANT"),
        };
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let (send, failed) = mpsc::channel();
        if let Some(output) = child.stdout.take() {
            // A thread, because a test that hangs prints nothing. It ends with the process.
            thread::spawn(move || send.send(first_failure(output)));
        }
        let outcome = match failed.recv_timeout(limit) {
            Ok(Some(test)) => (Outcome::Caught, test),
            Ok(None) if child.wait()?.success() => (Outcome::Survived, String::new()),
            Ok(None) => (Outcome::Caught, String::new()),
            Err(RecvTimeoutError::Timeout) => (Outcome::TimedOut, String::new()),
            Err(RecvTimeoutError::Disconnected) => {
                return Err("the output of the tests was lost".into());
            }
        };
        // It has ended, or is of no more use.
        child.kill()?;
        child.wait()?;
        Ok(outcome)
    }
}

fn first_failure(output: impl Read) -> Option<String> {
    let lines = BufReader::new(output).lines().map_while(Result::ok);
    let test = |line: String| {
        Some(
            line.strip_prefix("test ")?
                .strip_suffix(" ... FAILED")?
                .to_owned(),
        )
    };
    lines.filter_map(test).next()
}
