//! The loop of an agent: ask, run the calls while the answer still arrives, and ask again with their results.
//!
//! `cargo run --example agent`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;

use futures::FutureExt;
use serde::Deserialize;
use unbraid::ReadyPolicy;
use unbraid::tools::schemars::{self, JsonSchema};
use unbraid::tools::{RunLimits, Tool, Tools, VisibleError, run_calls};
use unbraid_examples::{AGENT, serve_turns};
use unbraid_http::{Client, Request};

#[derive(Deserialize, JsonSchema)]
struct Place {
    /// The name of a harbour.
    harbour: String,
}

async fn high_water(place: Place) -> Result<&'static str, VisibleError> {
    println!("  high_water runs for {}", place.harbour);
    match &*place.harbour {
        "Skagen" => Ok("03:10"),
        "Reykjavik" => Ok("05:45"),
        _ => Err(VisibleError::new("no such harbour")), // the model reads this
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let provider = Client::builder().base_url(serve_turns(AGENT).await?);
    let client = provider.api_key("a key").proxy_from_env(false).build()?;
    let tool = Tool::typed("high_water", "The time of high water today.", high_water);
    let tools = Tools::new().with(tool);
    let limits = RunLimits::default().with_ready(ReadyPolicy::NextCall);
    let mut request = Request::chat("gpt-4o-mini")
        .tools(tools.definitions())
        .user("When is high water in Skagen and in Reykjavik?");
    for turn in 1..=5 {
        println!("turn {turn}");
        let choice = client.send(&request).await?.first().await?;
        let end = choice
            .finished()
            .inspect(|_| println!("  the choice has ended"));
        let calls = run_calls(&choice, &tools, limits);
        let (outcome, results) = futures::join!(end, calls);
        request = request.reply(&outcome?);
        if results.is_empty() {
            println!("{}", choice.text().await?);
            return Ok(());
        }
        for result in &results {
            request = request.call_result(&result.call, result.text());
        }
    }
    Err("no answer after five turns".into())
}
