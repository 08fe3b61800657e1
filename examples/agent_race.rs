//! Three choices act at the same time, and the first one whose tools succeed wins.
//!
//! `cargo run --example agent_race`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;

use futures::future::{FutureExt, pending, select_ok};
use unbraid::tools::schemars::{self, JsonSchema};
use unbraid::tools::{RunLimits, Tool, ToolResult, Tools, VisibleError, run_calls};
use unbraid::{Choice, Completions};
use unbraid_examples::{RACE, serve_turns};
use unbraid_http::{Client, Request};

#[derive(serde::Deserialize, JsonSchema)]
struct Wanted {
    berth: u32,
}

async fn book_berth(wanted: Wanted) -> Result<String, VisibleError> {
    println!("booking berth {}", wanted.berth);
    match wanted.berth {
        3 => pending().await, // nobody answers
        7 => Err(VisibleError::new("the berth is taken")),
        berth => Ok(format!("berth {berth} is booked")),
    }
}

type Acted = (Choice, Vec<ToolResult>);

/// Runs the calls of one choice. It succeeds if all of them do.
async fn act(all: &Completions, choice: u32, tools: &Tools) -> Result<Acted, &'static str> {
    let choice = all.choice(choice).await.ok_or("there is no such choice")?;
    let results = run_calls(&choice, tools, RunLimits::default()).await;
    let succeeded = !results.is_empty() && results.iter().all(|result| result.output.is_ok());
    succeeded
        .then_some((choice, results))
        .ok_or("a call failed")
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let provider = Client::builder().base_url(serve_turns(RACE).await?);
    let client = provider.api_key("a key").proxy_from_env(false).build()?;
    let tools = Tools::new().with(Tool::typed("book_berth", "Books a berth.", book_berth));
    let request = Request::chat("gpt-4o-mini").user("Book a berth for a week.");
    let request = request.tools(tools.definitions());
    let all = client.send(&request.clone().n(3)).await?;
    let agents = (0..3).map(|choice| act(&all, choice, &tools).boxed_local());
    let ((winner, results), losers) = select_ok(agents).await?;
    drop(losers); // and with them, their tools
    all.keep_only([winner.index()]); // nothing more is generated for the others
    println!("choice {} wins: {}", winner.index(), results[0].text());
    let request = request.reply(&winner.finished().await?);
    let request = request.call_result(&results[0].call, results[0].text());
    let answer = client.send(&request).await?.first().await?;
    println!("{}", answer.text().await?);
    Ok(())
}
