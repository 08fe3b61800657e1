//! Counts the tokens of a stream that is cancelled: its usage, at the very end, never comes.
//!
//! `cargo run --example count_cancelled`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;

use futures::{StreamExt, stream};
use serde_json::json;
use unbraid::{Completions, StreamError, tokens::Counter};
use unbraid_examples::{HAIKUS, body};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let question = json!({ "role": "user", "content": "Write a haiku about rain" });
    let request = json!({ "model": "gpt-4o", "n": 4, "messages": [question] });
    // Without the request, the prompt's tokens would be unknown.
    let completions = Completions::builder()
        .request(&request)
        .tokenizer_for(Counter::for_response)
        .from_byte_stream(body(until_first_finish()).chain(stream::pending()));

    let first = completions.first_finished(1).await;
    completions.cancel();
    if let Err(StreamError::Cancelled) = completions.closed().await {
        println!("{} answer is enough", first.len());
    }

    let usage = completions.usage().await; // counted now, by the encoding of the model
    println!("source: {}", usage.source.as_str());
    let figures = [
        ("prompt", usage.prompt_tokens),
        ("completion", usage.completion_tokens),
        ("total", usage.total_tokens),
    ];
    for (what, tokens) in figures {
        println!("{what}: {tokens:?}");
    }
    for (choice, tokens) in usage.per_choice {
        println!("choice {choice}: {tokens}");
    }
    Ok(())
}

/// The recorded answers, up to where the first of the four is complete.
fn until_first_finish() -> &'static str {
    let finish = "\"finish_reason\":\"stop\"}]}\n\n";
    let end = HAIKUS.find(finish).map(|at| at + finish.len());
    HAIKUS.split_at(end.unwrap_or(HAIKUS.len())).0
}
