//! Takes the first answer that finishes and cancels the others.
//!
//! `cargo run --example best_of_n`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;

use unbraid::{Completions, StreamError};
use unbraid_examples::{HAIKUS, body};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let completions = Completions::from_byte_stream(body(HAIKUS));

    for answer in completions.first_finished(1).await {
        println!(
            "choice {} was first:\n{}\n",
            answer.choice, answer.message.content
        );
    }

    // With every choice ended or cancelled, the source is closed, and the server can stop generating.
    match completions.closed().await {
        Err(StreamError::Cancelled) => println!("the stream was cancelled"),
        other => println!("the stream closed earlier: {other:?}"),
    }

    // Cancelled choices keep what they received.
    let mut ends = Vec::new();
    let mut choices = completions.choices();
    while let Some(Ok(choice)) = choices.next().await {
        match choice.finished().await {
            Ok(answer) => ends.push((answer.choice, "finished", answer.message)),
            Err(error) => ends.push((
                error.choice(),
                error.end().as_str(),
                error.partial().message.clone(),
            )),
        }
    }
    ends.sort_by_key(|(choice, ..)| *choice);
    for (choice, end, message) in ends {
        let received = if message.content.is_empty() {
            "no text"
        } else {
            "some text"
        };
        println!("choice {choice}: {end}, {received}");
    }
    Ok(())
}
