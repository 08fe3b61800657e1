//! Self-consistency: cancels the remaining choices as soon as a majority of the answers agrees.
//!
//! `cargo run --example majority`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::{collections::HashMap, error::Error};

use futures::{StreamExt, stream::FuturesUnordered};
use unbraid::Completions;
use unbraid_examples::{SUM, body};

/// The number of choices that were requested.
const N: u32 = 5;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let completions = Completions::builder()
        .expect_choices(N)
        .from_byte_stream(body(SUM));

    let mut pending = FuturesUnordered::new();
    for index in 0..N {
        let choice = completions
            .choice(index)
            .await
            .ok_or("a choice is missing")?;
        pending.push(async move { choice.finished().await });
    }

    let mut votes = HashMap::<String, u32>::new();
    while let Some(answer) = pending.next().await {
        let answer = answer?; // in the order in which the choices end
        let Some((_, vote)) = answer.message.content.rsplit_once("Answer: ") else {
            continue; // the model did not follow the format
        };
        println!("choice {} says {vote}", answer.choice);
        let count = votes.entry(vote.to_owned()).or_default();
        *count += 1;
        if *count > N / 2 {
            completions.cancel(); // closes the response body, so no more tokens are billed
            println!("{count} of {N} agree: {vote}");
            break;
        }
    }

    while let Some(outcome) = pending.next().await {
        if let Err(error) = outcome {
            println!("choice {} was {}", error.choice(), error.end().as_str());
        }
    }
    Ok(())
}
