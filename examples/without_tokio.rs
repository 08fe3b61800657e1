//! Uses the synchronous core without a runtime: bytes in, events out. The crate `unbraid-core` alone is enough.
//!
//! `cargo run --example without_tokio`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use unbraid::{Config, Demux, Event};
use unbraid_examples::{WEATHER, reads};

fn main() {
    let mut demux = Demux::new(Config::default());
    for read in reads(WEATHER) {
        demux.feed(read);
        print_events(&mut demux);
    }
    demux.finish();
    print_events(&mut demux);

    println!();
    for choice in demux.choices() {
        for call in choice.message().tool_calls {
            println!(
                "choice {}: {}({})",
                choice.index(),
                call.name,
                call.arguments
            );
        }
    }
    println!("closed: {:?}", demux.closed());
}

/// Prints the events of the last read, in stream order.
fn print_events(demux: &mut Demux) {
    while let Some(record) = demux.next_event() {
        let Some(choice) = record.choice else {
            continue;
        };
        match record.event {
            Event::Content(text) => println!("choice {choice} content {text:?}"),
            Event::ToolCallStart {
                call_index, name, ..
            } => {
                println!("choice {choice} call {call_index} is {name}");
            }
            Event::ToolCallArguments { call_index, text } => {
                println!("choice {choice} call {call_index} + {text:?}");
            }
            Event::ToolCallDone { call_index, status } => {
                println!("choice {choice} call {call_index} is {status}");
            }
            _ => {}
        }
    }
}
