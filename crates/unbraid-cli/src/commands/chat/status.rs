//! The status of an answer that is over.

use unbraid_core::{ChoiceOutcome, Message, StreamError};

use super::{answer::Answer, context::Context, error, take::Take};
use crate::{exit::Status, outcome::StreamOutcome, output::print_error};

/// Whether the answer brought data for a choice. In a fan-out, the metadata come from one request and do not prove that any
/// choice has data.
fn has_data(choice: &ChoiceOutcome) -> bool {
    let message = &choice.message;
    let mut empty = Message::default();
    empty.role.clone_from(&message.role);
    let has_role = message.role.is_some() && !choice.role_inferred;
    has_role || *message != empty || !choice.finish_reasons.is_empty() || choice.discarded
}

/// Prints what went wrong, and returns the status of an answer with these choices of the expected ones.
pub(super) async fn print_diagnostics(
    answer: &Answer,
    closed: &Result<(), StreamError>,
    choices: &[ChoiceOutcome],
    context: Context<'_>,
    take: Option<Take>,
) -> Status {
    let expected = context.expected;
    let ends = choices.iter().map(|choice| (choice.choice, &choice.end));
    let outcome = StreamOutcome {
        closed: Some(closed),
        ends: ends.collect(),
        has_data: answer.completions.metadata().kind.is_some() || choices.iter().any(has_data),
        head: &answer.head.bytes(),
    };
    let status = || match error::print_diagnostics(&outcome, context) {
        Status::Finished if choices.len() < expected as usize => {
            let received = choices.len();
            print_error(format_args!(
                "unbraid: answer: expected {expected} choices, got {received} (E30)"
            ));
            Status::Unfinished
        }
        status => status,
    };
    let Some(mut take) = take else {
        return status();
    };
    let (k, finished) = (take.k, take.finished().await.len());
    if finished >= k {
        return Status::Finished; // the other choices were cancelled on purpose
    }
    match status() {
        Status::Finished => {
            print_error(format_args!(
                "unbraid: answer: {finished} of {k} choices finished"
            ));
            Status::Unfinished
        }
        status => status,
    }
}
