//! How the command ends: what it says on the standard error, and with which code it exits.

use std::{
    fmt,
    io::{self, Read, Write},
    path::PathBuf,
    process::ExitCode,
};

use unbraid_core::{BoxError, ChoiceEnd, ChoiceIndex, Demux, StreamError};
use unbraid_http::HttpError;

use crate::{chat, input::Source, printable::printable};

/// What a stream that was read came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    /// Every choice finished.
    Finished,
    /// The input could not be read, or was no stream.
    NoStream,
    /// Some choice did not finish.
    Unfinished,
}

/// What keeps a command from its work.
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
    /// What was asked for cannot be.
    Usage(String),
    /// No answer came.
    Http(HttpError),
    Listen {
        port: u16,
        error: io::Error,
    },
}

/// How a stream ended, whoever read it.
#[derive(Debug)]
pub(crate) struct Outcome<'o> {
    pub(crate) closed: Option<&'o Result<(), StreamError>>,
    /// The ends of its choices, in order of appearance.
    pub(crate) ends: Vec<(ChoiceIndex, &'o ChoiceEnd)>,
    /// Whether anything came of any choice. A choice of a fan-out may stand for its request only.
    pub(crate) came: bool,
    /// The input's first bytes, to tell what it is if it is no stream.
    pub(crate) head: &'o [u8],
}

/// Opens an input, or says which one cannot be.
pub(crate) fn open(source: &Source) -> Result<Box<dyn Read + Send>, Failure> {
    source.open().map_err(|error| Failure::open(source, error))
}

impl Failure {
    pub(crate) fn open(source: &Source, error: io::Error) -> Self {
        Self::Open {
            name: source.to_string(),
            error,
        }
    }

    fn code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Open { .. }
            | Self::File { .. }
            | Self::Output(_)
            | Self::Runtime(_)
            | Self::Demo(_)
            | Self::Http(_)
            | Self::Listen { .. } => 1,
        }
    }
}

/// The exit code; a failure is told first.
pub(crate) fn code(result: Result<Status, Failure>) -> ExitCode {
    match result {
        Ok(Status::Finished) => ExitCode::SUCCESS,
        Ok(Status::Unfinished) => ExitCode::from(UNFINISHED),
        Ok(Status::NoStream) => ExitCode::from(1),
        // Whoever reads has seen enough; the stream is not read to its end to tell how it would have ended.
        Err(Failure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(failure) => {
            complain(format_args!("unbraid: {failure}"));
            ExitCode::from(failure.code())
        }
    }
}

/// The code of a stream of which some choice did not finish.
pub(crate) const UNFINISHED: u8 = 3;

/// The status of a stream, unless its output could not be written. A reader that went away changes nothing.
pub(crate) fn written(written: io::Result<()>, status: Status) -> Result<Status, Failure> {
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::Output(error)),
        _ => Ok(status),
    }
}

/// Says on the standard error what went wrong with a stream, and gives its status.
pub(crate) fn tell(source: &dyn fmt::Display, outcome: &Outcome<'_>) -> Status {
    match outcome.closed {
        Some(Err(error)) => tell_error(source, error, outcome.head),
        _ if outcome.ends.is_empty() => report_no_choice(source, outcome.head),
        _ => tell_unfinished(source, outcome),
    }
    outcome.status()
}

impl Outcome<'_> {
    pub(crate) fn status(&self) -> Status {
        match self.closed {
            // An answer of the server, and the caller's own decision, even if no choice came.
            Some(Err(StreamError::Server(_) | StreamError::Cancelled)) => Status::Unfinished,
            // Foreign JSON is not a success, whatever was read of it.
            Some(Err(StreamError::UnsupportedFormat { .. })) => Status::NoStream,
            // Whatever ended it: if nothing came there was no answer, and that is never a success.
            _ if !self.came && self.ends.iter().all(|(_, end)| is_unanswered(end)) => {
                Status::NoStream
            }
            Some(Err(_)) => Status::Unfinished,
            _ if self.ends.iter().any(|(_, end)| !is_finished(end)) => Status::Unfinished,
            _ => Status::Finished,
        }
    }
}

/// The choices that have ended, in order of appearance.
pub(crate) fn ends(demux: &Demux) -> impl Iterator<Item = (ChoiceIndex, &ChoiceEnd)> {
    demux
        .choices()
        .filter_map(|choice| Some((choice.index(), choice.end()?)))
}

pub(crate) fn is_finished(end: &ChoiceEnd) -> bool {
    matches!(end, ChoiceEnd::Finished(_))
}

/// Whether this is no end of an answer, if nothing came before it. An error of the server is an answer, and a cancelled
/// choice is the caller's own decision.
fn is_unanswered(end: &ChoiceEnd) -> bool {
    !matches!(end, ChoiceEnd::ServerError(_) | ChoiceEnd::Cancelled)
}

fn tell_error(source: &dyn fmt::Display, error: &StreamError, head: &[u8]) {
    match error {
        StreamError::Transport(transport) => {
            let cause = printable(&transport.causes());
            complain(format_args!("unbraid: {source}: {error}: {cause}"));
        }
        StreamError::Server(server) => {
            complain(format_args!("unbraid: {source}: {error}"));
            if let Some(message) = server.message() {
                let message = printable(message);
                complain(format_args!("unbraid: the server reported: {message}"));
            }
        }
        _ => match hint(head).filter(|_| is_unexplained(error)) {
            Some(hint) => complain(format_args!("unbraid: {source}: {error}: {hint}")),
            None => complain(format_args!("unbraid: {source}: {error}")),
        },
    }
}

/// Reports a stream without an error and without a choice: most likely it is another API's.
fn report_no_choice(source: &dyn fmt::Display, head: &[u8]) {
    match hint(head) {
        Some(hint) => complain(format_args!("unbraid: {source}: {NO_CHOICE}: {hint}")),
        None => complain(format_args!("unbraid: {source}: {NO_CHOICE}")),
    }
}

/// What is said of a stream that ended without an error and without a choice.
pub(crate) const NO_CHOICE: &str = "the stream held no choice";

/// A choice that merely did not finish is no error of the stream, but code 3 should not stand there unexplained.
fn tell_unfinished(source: &dyn fmt::Display, outcome: &Outcome<'_>) {
    let ends = outcome.ends.iter().filter(|(_, end)| !is_finished(end));
    let mut ends: Vec<_> = ends.collect();
    ends.sort_by_key(|(index, _)| *index);
    if ends.is_empty() {
        return;
    }
    let list = listed(&ends, |(index, end)| {
        format!("choice {index} ({})", end.as_str())
    });
    complain(format_args!("unbraid: {source}: did not finish: {list}"));
}

/// Names things in one line, at most [`MAX_LISTED`] of them.
pub(crate) fn listed<T>(things: &[T], name: impl FnMut(&T) -> String) -> String {
    let mut list: Vec<String> = things.iter().take(MAX_LISTED).map(name).collect();
    if things.len() > MAX_LISTED {
        list.push(format!("{} more", things.len() - MAX_LISTED));
    }
    list.join(", ")
}

/// Choices that one line names; whoever needs all of them reads the JSON.
const MAX_LISTED: usize = 8;

/// Whether the error leaves open what was read instead of a stream.
fn is_unexplained(error: &StreamError) -> bool {
    matches!(
        error,
        StreamError::Empty { .. }
            | StreamError::NotAStream { .. }
            | StreamError::Malformed { .. }
            | StreamError::Limit(_)
    )
}

/// What an input appears to be by its first bytes, beyond the [formats](unbraid_core::BodyFormat) that the stream's error names.
fn hint(head: &[u8]) -> Option<&'static str> {
    Some(match head {
        [0x1f, 0x8b, ..] => "this is gzip: decompress it first",
        [0x28, 0xb5, 0x2f, 0xfd, ..] => "this is zstd: decompress it first",
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => "this is UTF-16: convert it to UTF-8 first",
        _ if head.trim_ascii_start().starts_with(b"<") => "this appears to be HTML or XML",
        _ if is_list(head) => "this appears to be a list, of models, embeddings or others",
        _ => return None,
    })
}

/// Whether this is the beginning of a list of the OpenAI API. Its end may be missing, so that it need not be JSON.
fn is_list(head: &[u8]) -> bool {
    let text = String::from_utf8_lossy(head);
    let text: String = text.split_whitespace().collect();
    text.contains("\"object\":\"list\"")
}

/// One line on the standard error. If that is closed there is nobody to be told.
pub(crate) fn complain(line: fmt::Arguments<'_>) {
    let _told: io::Result<()> = writeln!(io::stderr().lock(), "{line}");
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
            Self::Demo(error) => write!(f, "demo: {error}"),
            Self::Usage(what) => f.write_str(what),
            Self::Http(error) => f.write_str(&chat::told(error)),
            Self::Listen { port, error } => write!(f, "port {port}: {error}"),
        }
    }
}
