//! Sends a request with `n = 4` and reads four independent answers.
//!
//! `cargo run --example request`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::{error::Error, time::Duration};

use tokio::task::JoinSet;
use unbraid_examples::{HAIKUS, serve};
use unbraid_http::{Client, HttpError, Request};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // A real provider needs its URL and a key. `Client::from_env()` reads both from the environment.
    let provider = Client::builder()
        .base_url(serve(HAIKUS).await?)
        .proxy_from_env(false) // the server runs in this process
        .idle_timeout(Duration::from_secs(30));
    let request = Request::chat("gpt-4o-mini")
        .system("You are a poet.")
        .user("Write a haiku on rain.")
        .n(4)
        .temperature(1.1)
        .field("service_tier", "flex"); // any field that the provider accepts

    // Without a key the server refuses the request, with an error that can be matched.
    match provider.clone().build()?.send(&request).await {
        Err(HttpError::Status(error)) => println!("{error}: {:?}", error.message()),
        other => println!("{other:?}"),
    }

    let client = provider.api_key("a key").build()?;
    let completions = client.send(&request).await?;
    let mut choices = completions.choices();
    let mut tasks = JoinSet::new();
    while let Some(choice) = choices.next().await {
        let choice = choice?;
        tasks.spawn(async move { choice.finished().await });
    }
    let mut answers = Vec::new();
    while let Some(answer) = tasks.join_next().await {
        answers.push(answer??);
    }
    answers.sort_by_key(|answer| answer.choice);
    for answer in answers {
        println!("\nchoice {}:\n{}", answer.choice, answer.message.content);
    }
    Ok(())
}
