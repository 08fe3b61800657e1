//! How a command ends: its status or failure, and the exit code for it.

use std::{fmt, io, path::PathBuf, process::ExitCode};

use unbraid_core::BoxError;

use crate::{output::print_error, printable::printable};

/// The result of a command that read its stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    /// Every choice finished.
    Finished,
    /// The input could not be read, or was not a stream of choices.
    NoStream,
    /// A choice did not finish.
    Unfinished,
    /// The last answer has calls that were not run, because no further request was allowed.
    OpenCalls,
}

/// Why a command could not do its work.
#[derive(Debug)]
pub(crate) enum Failure {
    Open {
        name: String,
        error: io::Error,
    },
    File {
        path: PathBuf,
        error: io::Error,
    },
    Output(io::Error),
    Runtime(io::Error),
    Demo(BoxError),
    /// The arguments contradict each other or the files that they name.
    Usage(String),
    /// A request brought no answer; the text explains why, in one line.
    Request(String),
    Listen {
        port: u16,
        error: io::Error,
    },
    /// The answer of this input has no form of its provider.
    Native {
        name: String,
        error: BoxError,
    },
}

impl Failure {
    pub(crate) fn open(name: &dyn fmt::Display, error: io::Error) -> Self {
        Self::Open {
            name: name.to_string(),
            error,
        }
    }

    /// A part of the command that this build lacks, because it was built without a feature.
    pub(crate) fn missing(what: &str, feature: &str) -> Self {
        Self::Usage(missing(what, feature))
    }

    fn code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Open { .. }
            | Self::File { .. }
            | Self::Output(_)
            | Self::Runtime(_)
            | Self::Demo(_)
            | Self::Request(_)
            | Self::Listen { .. }
            | Self::Native { .. } => 1,
        }
    }
}

/// The message about a part of the command that this build lacks, because it was built without a feature.
pub(crate) fn missing(what: &str, feature: &str) -> String {
    format!(
        "{what} is not in this build: build it with `--features {feature}`, or without `--no-default-features`"
    )
}

/// The exit code for a stream with a choice that did not finish.
pub(crate) const UNFINISHED: u8 = 3;

/// Returns the exit code for a result, after printing the failure if there is one.
pub(crate) fn code(result: Result<Status, Failure>) -> ExitCode {
    match result {
        Ok(Status::Finished) => ExitCode::SUCCESS,
        Ok(Status::Unfinished) => ExitCode::from(UNFINISHED),
        Ok(Status::NoStream) => ExitCode::from(1),
        Ok(Status::OpenCalls) => ExitCode::from(4),
        // The reader of a pipe has read all it needs, as `head` does. Reading the stream to its end, only to learn the
        // status, could take forever.
        Err(Failure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(failure) => {
            print_error(format_args!("unbraid: {failure}"));
            ExitCode::from(failure.code())
        }
    }
}

/// Returns the status of a stream, or the failure to write its output.
///
/// A broken pipe does not change the status: the whole stream has been read by then, so the status is known.
pub(crate) fn status_after_output(
    written: io::Result<()>,
    status: Status,
) -> Result<Status, Failure> {
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::Output(error)),
        _ => Ok(status),
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open { name, error } => write!(f, "{name}: {error}"),
            Self::File { path, error } => {
                write!(f, "{}: {error}", printable(&path.to_string_lossy()))
            }
            Self::Output(error) => write!(f, "standard output: {error}"),
            Self::Runtime(error) => write!(f, "cannot start: {error}"),
            Self::Native { name, error } => write!(f, "{name}: {error}"),
            Self::Demo(error) => write!(f, "demo: {error}"),
            Self::Usage(message) | Self::Request(message) => f.write_str(message),
            Self::Listen { port, error } => write!(f, "port {port}: {error}"),
        }
    }
}
