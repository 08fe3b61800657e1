//! Reads three answers into a type, and asks again only for the one that was cut at the token limit, with a larger limit.
//!
//! `cargo run --example retry_truncated`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use futures::future::try_join_all;
use serde::Deserialize;
use unbraid::{Choice, JsonErrorKind};
use unbraid_examples::{EVENT, EVENTS, serve_each};
use unbraid_http::{Client, Error, Request};

const LIMIT: u32 = 24;

#[derive(Deserialize)]
struct Event {
    title: String,
    day: String,
    people: Vec<String>,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = serve_each(|request| if request["n"] == 3 { EVENTS } else { EVENT }).await?;
    let client = Client::builder().base_url(url).api_key("a key");
    let client = client.proxy_from_env(false).build()?;
    let request = Request::chat("gpt-4o-mini")
        .system("Answer with a JSON object of title, day and people.")
        .user("Choir practice is on Thursday. Ada, Bo and Chidi come.");

    let three = request.clone().n(3).max_tokens(LIMIT);
    let completions = client.send(&three).await?;
    let mut tasks = Vec::new();
    for index in 0..3 {
        let choice = completions
            .choice(index)
            .await
            .ok_or("a choice is missing")?;
        tasks.push(tokio::spawn(read(choice, request.clone(), client.clone())));
    }
    for event in try_join_all(tasks).await? {
        let Event { title, day, people } = event?;
        println!("{title}; {day}; {}", people.join(", "));
    }
    Ok(())
}

/// Reads a choice. While its JSON is cut, one choice with four times the limit takes its place.
async fn read(mut choice: Choice, request: Request, client: Client) -> Result<Event, Error> {
    for limit in [4 * LIMIT, 16 * LIMIT] {
        match choice.content_json().parse().await {
            Err(error) if matches!(error.kind(), JsonErrorKind::Truncated { .. }) => {}
            parsed => return Ok(parsed?),
        }
        println!("an answer is cut; one is requested with {limit} tokens");
        let again = request.clone().n(1).max_tokens(limit);
        choice = client.send(&again).await?.first().await?;
    }
    Ok(choice.content_json().parse().await?)
}
