//! One choice, the usual case: nothing to iterate over.
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

    // As it is written. For the whole text alone, `choice.text().await?` is enough.
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
