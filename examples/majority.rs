//! Self-consistency: as soon as a majority of the answers agrees, the others are cancelled.
//!
//! `cargo run --example majority`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::{collections::HashMap, error::Error};

use futures::{StreamExt, stream::FuturesUnordered};
use unbraid::Completions;
use unbraid_examples::{SUM, body};

/// Choices that were asked for.
const N: u32 = 5;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let completions = Completions::builder()
        .expect_choices(N)
        .from_byte_stream(body(SUM));

    let mut open = FuturesUnordered::new();
    for index in 0..N {
        let choice = completions.choice(index).await.ok_or("a choice lacks")?;
        open.push(async move { choice.finished().await });
    }

    let mut votes = HashMap::<String, u32>::new();
    while let Some(answer) = open.next().await {
        let answer = answer?; // each as soon as it ends
        let Some((_, vote)) = answer.message.content.rsplit_once("Answer: ") else {
            continue; // it did not follow the rules
        };
        println!("choice {} says {vote}", answer.choice);
        let count = votes.entry(vote.to_owned()).or_default();
        *count += 1;
        if *count > N / 2 {
            completions.cancel(); // the body closes here, and with it the bill
            println!("{count} of {N} agree: {vote}");
            break;
        }
    }

    while let Some(rest) = open.next().await {
        if let Err(cut) = rest {
            println!("choice {} was {}", cut.choice(), cut.end().as_str());
        }
    }
    Ok(())
}
