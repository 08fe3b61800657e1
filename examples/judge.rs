//! Best of n by a judge that reads along: it gives an answer up in the middle of the line that is too long.
//!
//! `cargo run --example judge`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;

use tokio::task::JoinSet;
use unbraid::{Choice, ChoiceOutcome, Completions};
use unbraid_examples::{HAIKUS, body};

/// Letters of the longest line that the judge likes.
const LONGEST: usize = 31;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let completions = Completions::from_byte_stream(body(HAIKUS));

    let mut judges = JoinSet::new();
    let mut choices = completions.choices();
    while let Some(choice) = choices.next().await {
        judges.spawn(judge(choice?));
    }

    let mut liked = judges.join_all().await;
    liked.sort_by_key(|(answer, _)| answer.choice);
    for (answer, verdict) in liked {
        println!("choice {}: {verdict}", answer.choice);
        if verdict == "liked" {
            println!("{}", answer.message.content);
        }
    }
    Ok(())
}

/// Reads an answer while it is written.
async fn judge(choice: Choice) -> (ChoiceOutcome, String) {
    let mut line = (1, 0);
    let mut content = choice.content();
    while let Some(Ok(delta)) = content.next().await {
        for letter in delta.chars() {
            line = if letter == '\n' {
                (line.0 + 1, 0)
            } else {
                (line.0, line.1 + 1)
            };
        }
        if line.1 > LONGEST {
            choice.cancel(); // nobody reads the rest of it
            return (
                choice.outcome().await,
                format!("given up in line {}", line.0),
            );
        }
    }
    let answer = choice.outcome().await;
    let whole = answer
        .finish_reason
        .as_ref()
        .is_some_and(|reason| reason.as_str() == "stop");
    (answer, if whole { "liked" } else { "not whole" }.to_owned())
}
