//! Counts the tokens of a cancelled stream, whose usage report at the end is never received.
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
    // The prompt's tokens can only be counted if the request is known.
    let completions = Completions::builder()
        .request(&request)
        .tokenizer_for(Counter::for_response)
        .from_byte_stream(body(until_first_finish()).chain(stream::pending()));

    let first = completions.first_finished(1).await;
    completions.cancel();
    if let Err(StreamError::Cancelled) = completions.closed().await {
        println!("{} answer is enough", first.len());
    }

    let usage = completions.usage().await; // counted here, with the encoding of the model
    println!("source: {}", usage.source.as_str());
    let counts = [
        ("prompt", usage.prompt_tokens),
        ("completion", usage.completion_tokens),
        ("total", usage.total_tokens),
    ];
    for (name, tokens) in counts {
        println!("{name}: {tokens:?}");
    }
    for (choice, tokens) in usage.per_choice {
        println!("choice {choice}: {tokens}");
    }
    Ok(())
}

/// The recording up to the chunk that completes the first of the four answers.
fn until_first_finish() -> &'static str {
    let finish = "\"finish_reason\":\"stop\"}]}\n\n";
    let end = HAIKUS.find(finish).map(|start| start + finish.len());
    HAIKUS.split_at(end.unwrap_or(HAIKUS.len())).0
}
