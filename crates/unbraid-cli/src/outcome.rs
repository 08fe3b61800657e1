//! How a stream ended: its status, and the messages on the standard error that explain it.

mod hint;

use std::fmt;

use serde_json::{Value, json};
use unbraid_core::{ChoiceEnd, ChoiceIndex, Demux, FinishClass, StreamError};

use crate::{exit::Status, output::print_error, printable::printable};

/// The type of the error of a stream without a choice, named like [`StreamError::Empty`].
pub(crate) const EMPTY: &str = "empty";

/// The message for a stream that ended without an error and without a choice.
const NO_CHOICE: &str = "the stream held no choice";

/// The error of a stream that ended without one, and without a choice.
pub(crate) fn no_choice_error() -> Value {
    json!({ "type": EMPTY, "message": NO_CHOICE })
}

/// How many items one line lists. The JSON output lists all of them.
const MAX_LISTED: usize = 8;

/// How a stream and its choices ended.
#[derive(Debug)]
pub(crate) struct StreamOutcome<'o> {
    pub(crate) closed: Option<&'o Result<(), StreamError>>,
    /// The ends of the choices, in order of appearance.
    pub(crate) ends: Vec<(ChoiceIndex, &'o ChoiceEnd)>,
    /// Whether the stream brought anything for any choice. A fan-out opens a choice for each request, so that a choice
    /// alone does not prove it.
    pub(crate) has_data: bool,
    /// The first bytes of the input, to recognize what it is if it is not a stream.
    pub(crate) head: &'o [u8],
}

impl StreamOutcome<'_> {
    pub(crate) fn status(&self) -> Status {
        match self.closed {
            // An error of the server is an answer, and a cancellation is the caller's decision, even without a choice.
            Some(Err(StreamError::Server(_) | StreamError::Cancelled)) => Status::Unfinished,
            // A body of another API is never a success, even if some choices could be read from it.
            Some(Err(StreamError::UnsupportedFormat { .. })) => Status::NoStream,
            // A stream without data is not an answer, however it ended.
            _ if !self.has_data && self.ends.iter().all(|(_, end)| is_unanswered(end)) => {
                Status::NoStream
            }
            Some(Err(_)) => Status::Unfinished,
            _ if self.ends.iter().any(|(_, end)| !is_finished(end)) => Status::Unfinished,
            _ => Status::Finished,
        }
    }

    /// Prints why the stream did not succeed, under this name of its source, and returns its status.
    pub(crate) fn print_diagnostics(&self, source: &dyn fmt::Display) -> Status {
        match self.closed {
            Some(Err(error)) => print_stream_error(source, error, self.head),
            _ if self.ends.is_empty() => print_no_choice(source, self.head),
            _ => self.print_unfinished(source),
        }
        self.status()
    }

    /// Lists the choices that did not finish. They are not errors of the stream, but exit code 3 needs an explanation.
    fn print_unfinished(&self, source: &dyn fmt::Display) {
        let unfinished = self.ends.iter().filter(|(_, end)| !is_finished(end));
        let mut unfinished: Vec<_> = unfinished.collect();
        unfinished.sort_by_key(|(index, _)| *index);
        if unfinished.is_empty() {
            return;
        }
        let list = list(&unfinished, |(index, end)| {
            format!("choice {index} ({})", end.as_str())
        });
        print_error(format_args!("unbraid: {source}: did not finish: {list}"));
    }
}

/// The choices of a stream that have ended, in order of appearance.
pub(crate) fn choice_ends(demux: &Demux) -> impl Iterator<Item = (ChoiceIndex, &ChoiceEnd)> {
    demux
        .choices()
        .filter_map(|choice| Some((choice.index(), choice.end()?)))
}

/// How much attention the end of a choice needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Notice {
    None,
    /// The choice finished early, or was cancelled on purpose.
    Warning,
    /// The choice did not finish.
    Error,
}

impl Notice {
    pub(crate) fn of(end: &ChoiceEnd) -> Self {
        match end {
            ChoiceEnd::Finished(reason) => match reason.class() {
                FinishClass::Length | FinishClass::ContentFilter => Self::Warning,
                _ => Self::None,
            },
            ChoiceEnd::Cancelled => Self::Warning,
            _ => Self::Error,
        }
    }

    /// A tick for a choice that finished, else a cross.
    pub(crate) fn mark(end: &ChoiceEnd) -> &'static str {
        if is_finished(end) {
            "\u{2713}"
        } else {
            "\u{2717}"
        }
    }

    /// The finish reason as the server wrote it, or the name of the end.
    pub(crate) fn name(end: &ChoiceEnd) -> &str {
        match end {
            ChoiceEnd::Finished(reason) => reason.as_str(),
            end => end.as_str(),
        }
    }
}

pub(crate) fn is_finished(end: &ChoiceEnd) -> bool {
    matches!(end, ChoiceEnd::Finished(_))
}

/// Formats items as a list in one line, and only counts those beyond [`MAX_LISTED`].
pub(crate) fn list<T>(items: &[T], name: impl FnMut(&T) -> String) -> String {
    let mut names: Vec<String> = items.iter().take(MAX_LISTED).map(name).collect();
    if items.len() > MAX_LISTED {
        names.push(format!("{} more", items.len() - MAX_LISTED));
    }
    names.join(", ")
}

/// Whether a choice with this end and no data got no answer. An error of the server is an answer, and a cancellation is
/// the caller's decision.
fn is_unanswered(end: &ChoiceEnd) -> bool {
    !matches!(end, ChoiceEnd::ServerError(_) | ChoiceEnd::Cancelled)
}

fn print_stream_error(source: &dyn fmt::Display, error: &StreamError, head: &[u8]) {
    match error {
        StreamError::Transport(transport) => {
            let cause = printable(&transport.causes());
            print_error(format_args!("unbraid: {source}: {error}: {cause}"));
        }
        StreamError::Server(server) => {
            print_error(format_args!("unbraid: {source}: {error}"));
            if let Some(message) = server.message() {
                let message = printable(message);
                print_error(format_args!("unbraid: the server reported: {message}"));
            }
        }
        _ => match hint::hint(head).filter(|_| is_unexplained(error)) {
            Some(hint) => print_error(format_args!("unbraid: {source}: {error}: {hint}")),
            None => print_error(format_args!("unbraid: {source}: {error}")),
        },
    }
}

/// Explains a stream without an error and without a choice. Most often it is the body of another API.
fn print_no_choice(source: &dyn fmt::Display, head: &[u8]) {
    match hint::hint(head) {
        Some(hint) => print_error(format_args!("unbraid: {source}: {NO_CHOICE}: {hint}")),
        None => print_error(format_args!("unbraid: {source}: {NO_CHOICE}")),
    }
}

/// Whether the error does not say what the input is instead of a stream.
fn is_unexplained(error: &StreamError) -> bool {
    matches!(
        error,
        StreamError::Empty { .. }
            | StreamError::NotAStream { .. }
            | StreamError::Interrupted { .. }
            | StreamError::Malformed { .. }
            | StreamError::Limit(_)
    )
}
