//! Prints all choices as they arrive, line by line, each line prefixed with its choice.
//!
//! `cargo run --example print_choices`
//!
//! A single loop reads the events of all choices, so only one task writes to the terminal.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::{collections::BTreeMap, error::Error};

use unbraid::{ChoiceIndex, Completions, Event};
use unbraid_examples::{HAIKUS, body};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let completions = Completions::from_byte_stream(body(HAIKUS));
    let mut lines: BTreeMap<ChoiceIndex, String> = BTreeMap::new();

    let mut events = completions.events();
    while let Some(record) = events.next().await {
        let record = record?;
        let Some(choice) = record.choice else {
            continue; // an event of the stream itself
        };
        let line = lines.entry(choice).or_default();
        match record.event {
            Event::Content(delta) => {
                line.push_str(&delta);
                while let Some((complete, rest)) = line.split_once('\n') {
                    println!("{choice} | {complete}");
                    *line = rest.to_owned();
                }
            }
            Event::ContentDone => println!("{choice} | {}", std::mem::take(line)),
            Event::End(end) => println!("{choice} = {}", end.as_str()),
            _ => {}
        }
    }
    Ok(())
}
