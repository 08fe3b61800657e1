//! Reads the only choice of a stream, without a loop over choices.
//!
//! `cargo run --example single`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::{error::Error, io::Write};

use unbraid::Completions;
use unbraid_examples::{ANSWER, body};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let completions = Completions::from_byte_stream(body(ANSWER));
    let choice = completions.first().await?;

    // Prints each delta as it arrives. `choice.text().await?` returns the complete text instead.
    let mut content = choice.content();
    while let Some(delta) = content.next().await {
        print!("{}", delta?);
        std::io::stdout().flush()?;
    }
    println!();

    let answer = choice.finished().await?;
    let usage = completions.usage().await;
    if let Some(reason) = answer.finish_reason {
        println!("finish reason: {reason}");
    }
    if let (Some(prompt), Some(completion)) = (usage.prompt_tokens, usage.completion_tokens) {
        println!("tokens: {prompt} for the prompt, {completion} for the answer");
    }
    Ok(())
}
