//! Runs each tool the moment its call is complete, while other choices are still being written.
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
        tasks.spawn(run_calls(choice?)); // before it has said anything
    }
    while let Some(results) = tasks.join_next().await {
        for result in results?? {
            println!("{result}");
        }
        println!("  {} choices are still at it", tasks.len());
    }
    Ok(())
}

/// Runs all calls of a choice, and waits for nothing but them.
async fn run_calls(choice: Choice) -> Result<Vec<String>, unbraid::Error> {
    let mut results = Vec::new();
    let mut calls = choice.tool_calls();
    while let Some(call) = calls.next().await {
        let call = call?;
        // Arguments that parse may still go on: only the end of the choice makes them whole.
        let arguments: Value = call.parse().await?;
        let result = tool(&call.name(), &arguments).await;
        results.push(format!("choice {}: {result}", choice.index()));
    }
    Ok(results)
}

/// Stands for a tool.
async fn tool(name: &str, arguments: &Value) -> String {
    tokio::time::sleep(Duration::from_millis(1)).await;
    format!("{name} was run with minutes = {}", arguments["minutes"])
}
