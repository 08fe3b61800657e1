//! Takes the first of several answers that finishes, and cancels the others.
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

    // Nobody was left to read for, so the source was closed: the server may stop, too.
    match completions.closed().await {
        Err(StreamError::Cancelled) => println!("the stream was cancelled"),
        other => println!("the stream closed before that: {other:?}"),
    }

    // What had come of the others is still there.
    let mut ends = Vec::new();
    let mut choices = completions.choices();
    while let Some(Ok(choice)) = choices.next().await {
        match choice.finished().await {
            Ok(answer) => ends.push((answer.choice, "finished", answer.message)),
            Err(cut) => ends.push((
                cut.choice(),
                cut.end().as_str(),
                cut.partial().message.clone(),
            )),
        }
    }
    ends.sort_by_key(|(index, ..)| *index);
    for (index, end, message) in ends {
        let begun = if message.content.is_empty() {
            "no text"
        } else {
            "some text"
        };
        println!("choice {index}: {end}, {begun}");
    }
    Ok(())
}
