//! Parses tool call arguments into a type. An error gives the position of the mismatch and keeps the raw text.
//!
//! `cargo run --example typed_arguments`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;

use serde::Deserialize;
use unbraid::{Completions, JsonErrorKind};
use unbraid_examples::{SNAIL, body};

#[derive(Deserialize)]
struct Answer {
    answer: String,
    minutes: f64,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let completions = Completions::from_byte_stream(body(SNAIL));
    completions.closed().await?;

    for index in 0..3 {
        let choice = completions
            .choice(index)
            .await
            .ok_or("a choice is missing")?;
        let mut calls = choice.tool_calls();
        while let Some(call) = calls.next().await {
            match call?.parse::<Answer>().await {
                Ok(Answer { answer, minutes }) => println!("{minutes} minutes: {answer}"),
                Err(error) => explain(&error),
            }
        }
    }
    Ok(())
}

/// Prints what a model needs to correct its call.
fn explain(error: &unbraid::JsonError) {
    println!("{error}"); // safe to log: it never contains the payload
    match error.kind() {
        JsonErrorKind::TypeMismatch(mismatch) => println!("  serde: {}", mismatch.detail()),
        JsonErrorKind::Choice(error) => println!("  the choice: {error}"),
        kind => println!("  the text: {kind}"),
    }
    println!("  the model wrote: {}", error.raw());
}
