//! Explains on the standard error why an answer did not come, or is incomplete.

use std::{error::Error, io, time::Duration};

use unbraid_core::{ChoiceEnd, ChoiceIndex, StreamError, TransportError};
use unbraid_http::{HttpError, Provider, StatusError, limits::MAX_RETRY_AFTER};

use super::context::Context;
use crate::{
    exit::Status,
    outcome::{self, StreamOutcome},
    output::print_error,
    printable::printable,
    report::request_error::innermost,
};

/// How many characters of a provider's message are shown. Some providers return a whole web page.
const MAX_MESSAGE_CHARS: usize = 600;

/// Explains in one line why a request brought no answer: the error, the message of the server, and a hint.
pub(super) fn describe(provider: Provider, error: &HttpError) -> String {
    let mut line = error.to_string();
    let message = match error.status_error() {
        Some(answer) => answer.message().map(str::to_owned),
        None => error.source().map(innermost),
    };
    if let Some(message) = message {
        let short: String = message.trim().chars().take(MAX_MESSAGE_CHARS).collect();
        line.extend([": ", &short]);
    }
    if let Some(attempts) = error
        .status_error()
        .map(StatusError::attempts)
        .filter(|n| *n > 1)
    {
        line.extend([" (", &attempts.to_string(), " attempts)"]);
    }
    if let Some(hint) = hint(provider, error) {
        line.extend(["; ", &hint]);
    }
    printable(&line)
}

fn hint(provider: Provider, error: &HttpError) -> Option<String> {
    Some(match error {
        HttpError::Connect { .. } => {
            let variable = provider.base_url_variable();
            format!("is the server running? its address is --base-url or {variable}")
        }
        HttpError::Tls { .. } => {
            "if the server uses plain HTTP, the base URL begins with http://".to_owned()
        }
        HttpError::UnexpectedHtml(_) => match provider {
            Provider::OpenAi | Provider::Responses => {
                "is the base URL that of the API? it usually ends in /v1".to_owned()
            }
            _ => "is the base URL that of the API?".to_owned(),
        },
        HttpError::Status(error) => return status_hint(provider, error),
        _ => return None,
    })
}

fn status_hint(provider: Provider, error: &StatusError) -> Option<String> {
    if error.param() == Some("n") {
        return Some("--fan-out requests several choices without n".to_owned());
    }
    // If the wait is longer, the error's own message states it.
    let is_short = |pause: &Duration| *pause <= MAX_RETRY_AFTER;
    if let Some(pause) = error.retry_after().filter(is_short) {
        let seconds = pause.as_secs_f64().ceil();
        return Some(format!("the server asks to wait for {seconds} s"));
    }
    match error.status() {
        401 | 403 => {
            let variables = provider.key_variables().join(" or ");
            Some(format!("is {variables} set, and a key of this server?"))
        }
        404 | 405 => Some("are the base URL and the model right?".to_owned()),
        _ => None,
    }
}

/// Prints why an answer is incomplete, and returns its status. A cause that several choices share is printed once.
pub(super) fn print_diagnostics(outcome: &StreamOutcome<'_>, context: Context<'_>) -> Status {
    let causes = causes(outcome, context);
    for (cause, choices) in &causes {
        let choices = outcome::list(choices, |choice| match context.labels.get(*choice) {
            Some(label) => format!("{choice} ({label})"),
            None => choice.to_string(),
        });
        print_error(format_args!("unbraid: choice {choices}: {cause}"));
    }
    match outcome.closed {
        Some(Err(StreamError::Transport(error))) => {
            if causes.is_empty() {
                print_error(format_args!("unbraid: answer: {}", describe_lost(error)));
            }
            outcome.status()
        }
        _ => outcome.print_diagnostics(&"answer"),
    }
}

/// Explains why a connection was lost. HTTP clients wrap the cause in several layers, and only the inner ones name it, so
/// all layers are printed.
fn describe_lost(error: &TransportError) -> String {
    let (bytes, chain) = (error.bytes, error.causes());
    let who = match lost_kind(error) {
        Some(io::ErrorKind::UnexpectedEof) => "the server closed it within its answer: ",
        Some(_) => "the server reset it: ",
        None => "",
    };
    printable(&format!(
        "connection lost after {bytes} bytes: {who}{chain}"
    ))
}

/// How the connection ended: by a close, or by a reset.
fn lost_kind(error: &TransportError) -> Option<io::ErrorKind> {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, UnexpectedEof};
    let mut cause: Option<&(dyn Error + 'static)> = error.source();
    while let Some(error) = cause {
        if let Some(io) = error.downcast_ref::<io::Error>()
            && matches!(
                io.kind(),
                ConnectionAborted | ConnectionReset | UnexpectedEof
            )
        {
            return Some(io.kind());
        }
        if error
            .downcast_ref()
            .is_some_and(hyper::Error::is_incomplete_message)
        {
            return Some(UnexpectedEof);
        }
        cause = error.source();
    }
    None
}

/// The causes of lost connections, each with the choices that it ended.
fn causes(outcome: &StreamOutcome<'_>, context: Context<'_>) -> Vec<(String, Vec<ChoiceIndex>)> {
    let mut causes: Vec<(String, Vec<ChoiceIndex>)> = Vec::new();
    for (index, end) in &outcome.ends {
        let ChoiceEnd::Transport(error) = end else {
            continue;
        };
        let provider = context.provider_of(*index);
        let cause = match HttpError::find_in(&**error) {
            Some(error) => describe(provider, error),
            None => describe_lost(error),
        };
        match causes.iter_mut().find(|(known, _)| *known == cause) {
            Some((_, choices)) => choices.push(*index),
            None => causes.push((cause, vec![*index])),
        }
    }
    causes.iter_mut().for_each(|(_, choices)| choices.sort());
    causes
}
