//! Spawns a task for each choice when the choice appears. Each task reads only its own choice.
//!
//! `cargo run --example concurrent`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;

use tokio::task::JoinSet;
use unbraid::{Choice, ChoiceError, ChoiceOutcome, Completions};
use unbraid_examples::{HAIKUS, body};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let completions = Completions::from_byte_stream(body(HAIKUS));

    let mut tasks = JoinSet::new();
    let mut choices = completions.choices();
    while let Some(choice) = choices.next().await {
        tasks.spawn(handle(choice?));
    }

    let mut answers = Vec::new();
    while let Some(answer) = tasks.join_next().await {
        answers.push(answer??); // in the order in which the tasks end
    }

    answers.sort_by_key(|(answer, _)| answer.choice);
    for (answer, deltas) in answers {
        let first = answer.message.content.lines().next().unwrap_or("");
        println!("choice {}: {deltas} deltas, \"{first} ..\"", answer.choice);
    }
    if let Some(tokens) = completions.usage().await.completion_tokens {
        println!("{tokens} tokens in total");
    }
    Ok(())
}

/// Reads one answer while the model writes it.
async fn handle(choice: Choice) -> Result<(ChoiceOutcome, usize), ChoiceError> {
    let mut deltas = 0;
    let mut content = choice.content();
    while let Some(delta) = content.next().await {
        deltas += usize::from(!delta?.is_empty());
    }
    Ok((choice.finished().await?, deltas))
}
