//! Subscribes when everything is over, and still gets every piece from the first.
//!
//! `cargo run --example late_subscriber`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;

use unbraid::{Completions, Part};
use unbraid_examples::{WEATHER, body};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let completions = Completions::from_byte_stream(body(WEATHER));
    completions.closed().await?; // the source has ended, and so have the actors

    let Some(choice) = completions.choice(0).await else {
        return Err("there is no choice 0".into());
    };
    let mut messages = choice.messages();
    let mut again = choice.messages(); // a second subscriber has a place of its own
    while let Some(message) = messages.next().await {
        let message = message?;
        let role = message.role.as_deref().unwrap_or("?");
        match &message.part {
            Part::Text(text) => println!("{role}: {:?}", text.as_str()),
            Part::FunctionName {
                call_index, name, ..
            } => println!("{role}: call {call_index} is {name}"),
            Part::FunctionArguments {
                call_index,
                arguments,
            } => {
                println!("{role}: call {call_index} + {:?}", arguments.as_str());
            }
            _ => {}
        }
        assert_eq!(again.next().await.transpose()?, Some(message));
    }

    for call in choice.finished().await?.message.tool_calls {
        let status = call.status.map_or("open", |status| status.as_str());
        println!("{}({}) is {status}", call.name, call.arguments);
    }
    Ok(())
}
