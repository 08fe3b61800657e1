//! The flat view: the server's pieces as they come, each with its index. Then both views of one stream at once.
//!
//! `cargo run --example flat_view`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::{
    collections::BTreeMap,
    error::Error,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use futures::StreamExt;
use unbraid::{Completions, Updates};
use unbraid_examples::{HAIKUS, body};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // By hand: no actors, no kept text, and every index is the caller's own business.
    let mut texts: BTreeMap<u32, String> = BTreeMap::new();
    let mut flat = Updates::from_byte_stream(body(HAIKUS));
    while let Some(update) = flat.next().await {
        let update = update?;
        if let (Some(choice), Some(piece)) = (update.choice, &update.content) {
            texts.entry(choice.0).or_default().push_str(&piece.text);
        }
    }
    println!("by hand: {:?}", texts.remove(&2).unwrap_or_default());

    // Both: a tap that sees every update, and the choices apart.
    let seen = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&seen);
    let tapped = Updates::from_byte_stream(body(HAIKUS)).inspect(move |_| {
        count.fetch_add(1, Ordering::Relaxed);
    });
    let completions = Completions::from_updates(tapped);
    if let Some(choice) = completions.choice(2).await {
        println!("apart:   {:?}", choice.text().await?);
    }
    completions.closed().await?;
    println!("the tap saw {} updates", seen.load(Ordering::Relaxed));
    Ok(())
}
