//! A conversation: a question and its answer, or with `--run-tool` as many turns as its calls need.

use std::path::{Path, PathBuf};

use tokio::signal;
use unbraid_http::Request;

use super::{
    recording::RecordFile,
    turn::{self, OpenCalls, Turn},
};
use crate::{
    exit::{Failure, Status},
    output::print_error,
};

/// Where the bodies of the answers are recorded: the first in the file that was named, the others beside it.
#[derive(Debug)]
pub(super) struct Recordings {
    path: PathBuf,
    /// Opened before the request is sent: an answer that cannot be recorded should not cost tokens.
    first: Option<RecordFile>,
}

impl Recordings {
    pub(super) fn open(path: &Path) -> Result<Self, Failure> {
        Ok(Self {
            path: path.into(),
            first: Some(RecordFile::open(path)?),
        })
    }

    fn next(&mut self, turn: u32) -> Result<RecordFile, Failure> {
        match self.first.take() {
            Some(first) => Ok(first),
            None => RecordFile::open(&numbered(&self.path, turn)),
        }
    }
}

/// The file of a later turn: `answer.2.sse` beside `answer.sse`. A pipe or a device gets the bodies of all turns.
fn numbered(path: &Path, turn: u32) -> PathBuf {
    if path.metadata().is_ok_and(|metadata| !metadata.is_file()) {
        return path.into();
    }
    let mut extension = turn.to_string();
    if let Some(last) = path.extension() {
        extension.extend([".", &last.to_string_lossy()]);
    }
    path.with_extension(extension)
}

/// Sends the request, and the next ones with the results of its calls, and shows the answers.
pub(super) async fn run(
    shared: Turn<'_>,
    mut request: Request,
    mut recordings: Option<Recordings>,
) -> Result<Status, Failure> {
    let mut number = 1;
    loop {
        let record = recordings
            .as_mut()
            .map(|recordings| recordings.next(number));
        let result = shared.run(&request, record.transpose()?, number).await?;
        let (Some(runner), Some(open)) = (shared.runner, result.open) else {
            return Ok(result.status);
        };
        if number >= runner.max_turns {
            print_open(&open, number);
            return Ok(Status::OpenCalls);
        }
        let results = tokio::select! {
            // Listening begins before the question is printed, or a Ctrl-C at the question could be lost.
            biased;
            _ = signal::ctrl_c() => return Ok(turn::interrupted()),
            results = runner.run(&open.choice) => results,
        };
        request = request.reply(&open.outcome);
        for result in &results {
            request = request.call_result(&result.call, result.text());
        }
        number += 1;
    }
}

fn print_open(open: &OpenCalls, turns: u32) {
    let calls = match open.outcome.message.tool_calls.len() {
        1 => "a call".to_owned(),
        n => format!("{n} calls"),
    };
    let turns = match turns {
        1 => "1 turn".to_owned(),
        n => format!("{n} turns"),
    };
    print_error(format_args!(
        "unbraid: answer: {calls} left after {turns}: --max-turns allows no more"
    ));
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::numbered;

    #[test]
    fn a_later_turn_has_its_own_file() {
        let next = |path: &str| numbered(Path::new(path), 2);
        assert_eq!(next("x/answer.sse"), Path::new("x/answer.2.sse"));
        assert_eq!(next("x.y/answer"), Path::new("x.y/answer.2"));
    }

    #[cfg(unix)]
    #[test]
    fn a_device_gets_every_turn() {
        assert_eq!(numbered(Path::new("/dev/null"), 2), Path::new("/dev/null"));
    }
}
