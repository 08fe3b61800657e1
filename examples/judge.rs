//! Best of n with a judge that reads each answer while it is written, and cancels it at the first line that is too long.
//!
//! `cargo run --example judge`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;

use tokio::task::JoinSet;
use unbraid::{Choice, ChoiceOutcome, Completions};
use unbraid_examples::{HAIKUS, body};

/// The longest line that the judge accepts, in characters.
const MAX_LINE: usize = 31;

const ACCEPTED: &str = "accepted";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let completions = Completions::from_byte_stream(body(HAIKUS));

    let mut judges = JoinSet::new();
    let mut choices = completions.choices();
    while let Some(choice) = choices.next().await {
        judges.spawn(judge(choice?));
    }

    let mut judged = judges.join_all().await;
    judged.sort_by_key(|(answer, _)| answer.choice);
    for (answer, verdict) in judged {
        println!("choice {}: {verdict}", answer.choice);
        if verdict == ACCEPTED {
            println!("{}", answer.message.content);
        }
    }
    Ok(())
}

/// Reads an answer while the model writes it.
async fn judge(choice: Choice) -> (ChoiceOutcome, String) {
    let mut text = String::new();
    let mut content = choice.content();
    while let Some(Ok(delta)) = content.next().await {
        text.push_str(&delta);
        if let Some(line) = text.lines().position(is_too_long) {
            choice.cancel(); // the other choices continue
            let verdict = format!("rejected at line {}", line + 1);
            return (choice.outcome().await, verdict);
        }
    }
    let answer = choice.outcome().await;
    let reason = answer.finish_reason.as_ref();
    let is_complete = reason.is_some_and(|reason| reason.as_str() == "stop");
    let verdict = if is_complete { ACCEPTED } else { "incomplete" };
    (answer, verdict.to_owned())
}

fn is_too_long(line: &str) -> bool {
    line.chars().count() > MAX_LINE
}
