//! Runs each tool as soon as its call is complete, while the other choices are still streaming.
//!
//! `cargo run --example run_tools`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::{error::Error, time::Duration};

use serde_json::Value;
use tokio::task::JoinSet;
use unbraid::{Choice, Completions};
use unbraid_examples::{SNAIL, body};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let completions = Completions::from_byte_stream(body(SNAIL));

    let mut tasks = JoinSet::new();
    let mut choices = completions.choices();
    while let Some(choice) = choices.next().await {
        tasks.spawn(run_calls(choice?)); // when the choice appears, before its first call
    }
    while let Some(results) = tasks.join_next().await {
        for result in results?? {
            println!("{result}");
        }
        println!("  choices still running: {}", tasks.len());
    }
    Ok(())
}

/// Runs the tool calls of one choice.
async fn run_calls(choice: Choice) -> Result<Vec<String>, unbraid::Error> {
    let mut results = Vec::new();
    let mut calls = choice.tool_calls();
    while let Some(call) = calls.next().await {
        let call = call?;
        // Waits for the end of the choice. Until then, even arguments that parse may be incomplete.
        let arguments: Value = call.parse().await?;
        let result = tool(&call.name(), &arguments).await;
        results.push(format!("choice {}: {result}", choice.index()));
    }
    Ok(results)
}

/// A placeholder for a real tool.
async fn tool(name: &str, arguments: &Value) -> String {
    tokio::time::sleep(Duration::from_millis(1)).await;
    format!("{name} was run with minutes = {}", arguments["minutes"])
}
