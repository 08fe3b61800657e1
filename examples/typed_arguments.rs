//! Arguments as a type of one's own. What does not fit is an error that says where, and the raw text is still there.
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
        let choice = completions.choice(index).await.ok_or("a choice lacks")?;
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

/// What a model could be told, so that it tries again.
fn explain(error: &unbraid::JsonError) {
    println!("{error}"); // harmless: it never quotes what the model wrote
    match error.kind() {
        JsonErrorKind::TypeMismatch(shape) => println!("  serde says: {}", shape.detail()),
        fault => println!("  the text: {fault}"),
        JsonErrorKind::Choice(cut) => println!("  the choice: {cut}"),
        _ => {}
    }
    println!("  the model wrote: {}", error.raw());
}
