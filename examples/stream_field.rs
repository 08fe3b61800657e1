//! Prints one field of a tool call's arguments while the model writes it, before the JSON is complete.
//!
//! `cargo run --example stream_field`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::{
    error::Error,
    io::{self, Write},
};

use unbraid::Completions;
use unbraid_examples::{SNAIL, body};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let completions = Completions::from_byte_stream(body(SNAIL));
    let choice = completions.choice(2).await.ok_or("there is no choice 2")?;

    let mut calls = choice.tool_calls();
    while let Some(call) = calls.next().await {
        let call = call?;
        println!("{}:", call.name());
        let mut deltas = 0;
        let mut answer = call.field("/answer"); // decoded: no quotes, no escapes
        while let Some(delta) = answer.next().await {
            print!("{}", delta?);
            io::stdout().flush()?;
            deltas += 1;
        }
        println!("\n({deltas} deltas)");
        // The field is complete here, but the call may not be: `parse` waits for its end.
        let arguments: serde_json::Value = call.parse().await?;
        println!("minutes: {}", arguments["minutes"]);
    }
    Ok(())
}
