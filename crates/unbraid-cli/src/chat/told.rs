//! What is said of an answer that did not come, or not whole.

use std::{error::Error, time::Duration};

use unbraid_core::{ChoiceEnd, ChoiceIndex, StreamError, TransportError};
use unbraid_http::{HttpError, StatusError, limits::MAX_RETRY_AFTER};

use crate::{
    exit::{self, Outcome, Status, complain},
    printable::printable,
};

/// Letters of a provider's message that are shown; a page's text would fill the terminal.
const MAX_MESSAGE: usize = 600;

/// Why a request brought no answer, in one line: what happened, what the other side said, what to look at.
pub(crate) fn told(error: &HttpError) -> String {
    let mut line = error.to_string();
    let said = match error.status_error() {
        Some(answer) => answer.message().map(str::to_owned),
        None => error.source().map(innermost),
    };
    if let Some(said) = said {
        let short: String = said.trim().chars().take(MAX_MESSAGE).collect();
        line.extend([": ", &short]);
    }
    if let Some(attempts) = error
        .status_error()
        .map(StatusError::attempts)
        .filter(|n| *n > 1)
    {
        line.extend([" (", &attempts.to_string(), " attempts)"]);
    }
    if let Some(hint) = hint(error) {
        line.extend(["; ", &hint]);
    }
    printable(&line)
}

/// What the lowest layer says: those between repeat that something failed.
pub(super) fn innermost(error: &(dyn Error + 'static)) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}

fn hint(error: &HttpError) -> Option<String> {
    Some(match error {
        HttpError::Connect { .. } => {
            "is the server running? its address is --base-url or OPENAI_BASE_URL".to_owned()
        }
        HttpError::Tls { .. } => {
            "if the server speaks plain HTTP, the base URL begins with http://".to_owned()
        }
        HttpError::UnexpectedHtml(_) => {
            "is the base URL that of the API? it mostly ends in /v1".to_owned()
        }
        HttpError::Status(refused) => return hint_at(refused),
        _ => return None,
    })
}

fn hint_at(refused: &StatusError) -> Option<String> {
    if refused.param() == Some("n") {
        return Some("--fan-out asks for several choices without n".to_owned());
    }
    // The error itself states a wait that is longer.
    let short = |pause: &Duration| *pause <= MAX_RETRY_AFTER;
    if let Some(pause) = refused.retry_after().filter(short) {
        let seconds = pause.as_secs_f64().ceil();
        return Some(format!("the server asks to wait for {seconds} s"));
    }
    match refused.status() {
        401 | 403 => Some("is OPENAI_API_KEY set, and a key of this server?".to_owned()),
        404 | 405 => Some("are the base URL and the model right?".to_owned()),
        _ => None,
    }
}

/// Says what went wrong with an answer, and gives its status. What several choices died of is said once.
pub(super) fn tell(outcome: &Outcome<'_>) -> Status {
    let causes = causes(outcome);
    for (cause, choices) in &causes {
        let choices = exit::listed(choices, ToString::to_string);
        complain(format_args!("unbraid: choice {choices}: {cause}"));
    }
    match outcome.closed {
        Some(Err(StreamError::Transport(error))) => {
            if causes.is_empty() {
                complain(format_args!("unbraid: answer: {}", lost(error)));
            }
            outcome.status()
        }
        _ => exit::tell(&"answer", outcome),
    }
}

/// Why a connection was lost. Clients wrap that in several layers; all of them are printed, for the inner ones name it.
fn lost(error: &TransportError) -> String {
    let (bytes, chain) = (error.bytes, error.causes());
    printable(&format!("connection lost after {bytes} bytes: {chain}"))
}

/// Each cause once, with its choices.
fn causes(outcome: &Outcome<'_>) -> Vec<(String, Vec<ChoiceIndex>)> {
    let mut causes: Vec<(String, Vec<ChoiceIndex>)> = Vec::new();
    for (index, end) in &outcome.ends {
        let ChoiceEnd::Transport(error) = end else {
            continue;
        };
        let cause = HttpError::find_in(&**error).map_or_else(|| lost(error), told);
        match causes.iter_mut().find(|(known, _)| *known == cause) {
            Some((_, choices)) => choices.push(*index),
            None => causes.push((cause, vec![*index])),
        }
    }
    causes.iter_mut().for_each(|(_, choices)| choices.sort());
    causes
}
