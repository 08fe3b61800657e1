//! Reads the flat view: one update per chunk and choice, each with its index. Then reads both views of one stream.
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
    // The flat view runs no actors and keeps no text. The caller separates the choices.
    let mut texts: BTreeMap<u32, String> = BTreeMap::new();
    let mut flat = Updates::from_byte_stream(body(HAIKUS));
    while let Some(update) = flat.next().await {
        let update = update?;
        if let (Some(choice), Some(content)) = (update.choice, &update.content) {
            texts.entry(choice.0).or_default().push_str(&content.text);
        }
    }
    println!("flat view: {:?}", texts.remove(&2).unwrap_or_default());

    // Both views: `inspect` sees every update before the choices are separated.
    let seen = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&seen);
    let inspected = Updates::from_byte_stream(body(HAIKUS)).inspect(move |_| {
        count.fetch_add(1, Ordering::Relaxed);
    });
    let completions = Completions::from_updates(inspected);
    if let Some(choice) = completions.choice(2).await {
        println!("choice 2:  {:?}", choice.text().await?);
    }
    completions.closed().await?;
    println!("{} updates inspected", seen.load(Ordering::Relaxed));
    Ok(())
}
