//! Runs one program: its input, its output, its time, and its end.

use std::{
    io,
    path::Path,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    process::{Child, ChildStdin, Command},
    time,
};

/// How many bytes a result may have. A larger one would not fit the context of most models.
pub(super) const MAX_OUTPUT: u64 = 1 << 20;

/// How many bytes of the standard error are kept.
const MAX_STDERR: u64 = 1 << 13;

/// A run without a result.
#[derive(Debug)]
pub(super) struct ScriptError {
    pub(super) problem: Problem,
    /// What the program wrote to its standard error, up to a limit.
    pub(super) stderr: Vec<u8>,
}

#[derive(Debug)]
pub(super) enum Problem {
    /// The program could not be started, or its output not be read.
    Io(io::Error),
    Status(ExitStatus),
    TooLong,
    TimedOut,
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Runs a program, without a shell, and returns its standard output without newlines at the end, as `$(..)` does.
///
/// Dropping the future kills the program and its children.
pub(super) async fn run(
    program: &Path,
    input: &str,
    timeout: Duration,
) -> Result<String, ScriptError> {
    let mut stderr = Vec::new();
    let result = match time::timeout(timeout, complete(program, input, &mut stderr)).await {
        Ok(result) => result,
        Err(_elapsed) => Err(Problem::TimedOut),
    };
    match result {
        Ok(output) => Ok(String::from_utf8_lossy(&output)
            .trim_end_matches(['\r', '\n'])
            .to_owned()),
        Err(problem) => Err(ScriptError { problem, stderr }),
    }
}

async fn complete(program: &Path, input: &str, errors: &mut Vec<u8>) -> Result<Vec<u8>, Problem> {
    let mut command = Command::new(program);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    #[cfg(unix)]
    command.process_group(0);
    let mut child = command.spawn()?;
    let group = Group::of(&child);
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let ((), output, ()) = futures::try_join!(
        write_input(stdin, input),
        read_output(stdout),
        read_errors(stderr, errors),
    )?;
    let status = child.wait().await?;
    group.release();
    match status.success() {
        true => Ok(output),
        false => Err(Problem::Status(status)),
    }
}

/// Writes the input, and closes the pipe. A program need not read it.
async fn write_input(stdin: Option<ChildStdin>, input: &str) -> Result<(), Problem> {
    if let Some(mut stdin) = stdin {
        let _unread = stdin.write_all(input.as_bytes()).await;
    }
    Ok(())
}

async fn read_output(stdout: Option<impl AsyncRead + Unpin>) -> Result<Vec<u8>, Problem> {
    let mut output = Vec::new();
    if let Some(stdout) = stdout {
        stdout.take(MAX_OUTPUT + 1).read_to_end(&mut output).await?;
    }
    match output.len() as u64 > MAX_OUTPUT {
        true => Err(Problem::TooLong),
        false => Ok(output),
    }
}

/// Reads to the end, so that the program never waits for a reader, and keeps the beginning.
async fn read_errors(
    stderr: Option<impl AsyncRead + Unpin>,
    kept: &mut Vec<u8>,
) -> Result<(), Problem> {
    if let Some(mut stderr) = stderr {
        (&mut stderr).take(MAX_STDERR).read_to_end(kept).await?;
        tokio::io::copy(&mut stderr, &mut tokio::io::sink()).await?;
    }
    Ok(())
}

/// The processes of a program: itself and its children, of which only the group is known. Dropping it kills them.
#[derive(Debug)]
struct Group {
    #[cfg(unix)]
    id: Option<rustix::process::Pid>,
}

#[cfg(unix)]
impl Group {
    fn of(child: &Child) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Self {
            id: id.and_then(rustix::process::Pid::from_raw),
        }
    }

    /// Leaves the processes alone: the program has ended, and its id may become that of another.
    fn release(mut self) {
        self.id = None;
    }
}

#[cfg(unix)]
impl Drop for Group {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            let _ended = rustix::process::kill_process_group(id, rustix::process::Signal::KILL);
        }
    }
}

/// Elsewhere only the program itself is killed, by its handle.
#[cfg(not(unix))]
impl Group {
    fn of(_: &Child) -> Self {
        Self {}
    }

    fn release(self) {}
}
