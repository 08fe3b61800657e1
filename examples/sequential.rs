//! Reads one choice after the other, as if each had its own stream.
//!
//! `cargo run --example sequential`
//!
//! All choices are received at the same time. The text of a choice is kept until it is read.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;

use unbraid::Completions;
use unbraid_examples::{HAIKUS, body};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let completions = Completions::from_byte_stream(body(HAIKUS));

    let mut choices = completions.choices();
    while let Some(choice) = choices.next().await {
        let choice = choice?; // in the order in which they appeared
        println!("choice {}:", choice.index());

        let mut content = choice.content();
        while let Some(delta) = content.next().await {
            print!("{}", delta?); // an error says why the text ends here
        }

        let outcome = choice.finished().await?;
        match outcome.finish_reason {
            Some(reason) => println!("\n-- {reason}\n"),
            None => println!("\n-- no reason given\n"),
        }
    }
    Ok(())
}
