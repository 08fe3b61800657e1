//! Prints all choices at once, line by line, each line marked with its choice.
//!
//! `cargo run --example print_choices`
//!
//! One loop reads the events of all choices, so that one place writes to the terminal.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::{collections::BTreeMap, error::Error};

use unbraid::{ChoiceIndex, Completions, Event};
use unbraid_examples::{HAIKUS, body};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let completions = Completions::from_byte_stream(body(HAIKUS));
    let mut lines: BTreeMap<ChoiceIndex, String> = BTreeMap::new();

    let mut events = completions.events();
    while let Some(stamped) = events.next().await {
        let stamped = stamped?;
        let Some(choice) = stamped.choice else {
            continue; // news of the stream itself
        };
        let line = lines.entry(choice).or_default();
        match stamped.event {
            Event::Content(delta) => {
                line.push_str(&delta);
                while let Some((whole, rest)) = line.split_once('\n') {
                    println!("{choice} | {whole}");
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
