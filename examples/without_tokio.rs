//! The synchronous half: bytes in, events out, no runtime. It needs the crate `unbraid-core` only.
//!
//! `cargo run --example without_tokio`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use unbraid::{Config, Demux, Event};
use unbraid_examples::{WEATHER, reads};

fn main() {
    let mut demux = Demux::new(Config::default());
    for read in reads(WEATHER) {
        demux.feed(read);
        tell(&mut demux);
    }
    demux.finish();
    tell(&mut demux);

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

/// Prints what the last read brought, in the order of the stream.
fn tell(demux: &mut Demux) {
    while let Some(stamped) = demux.next_event() {
        let Some(choice) = stamped.choice else {
            continue;
        };
        match stamped.event {
            Event::Content(text) => println!("choice {choice} says {text:?}"),
            Event::ToolCallStart {
                call_index: call,
                id,
                name,
                ..
            } => {
                println!(
                    "choice {choice} call {call} is {name}, id {}",
                    id.unwrap_or("unknown")
                );
            }
            Event::ToolCallArguments {
                call_index: call,
                text,
            } => {
                println!("choice {choice} call {call} + {text:?}");
            }
            Event::ToolCallDone {
                call_index: call,
                status,
            } => {
                println!("choice {choice} call {call} is {status}")
            }
            _ => {}
        }
    }
}
