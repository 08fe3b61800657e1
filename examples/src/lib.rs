//! Shared code of the examples: recorded answers, and a response body that replays one in small reads.

mod server;

use std::{io, time::Duration};

pub use server::{serve, serve_each, serve_turns};

use futures::{Stream, StreamExt, stream};

/// Four haikus about rain (`n=4`). The choices appear in the order 2, 0, 3, 1. Choice 3 stops at the token limit.
pub const HAIKUS: &str = include_str!("../streams/haikus.sse");

/// One answer with a single sentence (`n=1`).
pub const ANSWER: &str = include_str!("../streams/answer.sse");

/// Two answers (`n=2`) with two tool calls each. The fragments of all four calls are interleaved.
pub const WEATHER: &str = include_str!("../streams/weather.sse");

/// Three answers (`n=3`), each a call of the tool `answer`. Choice 0 ends first. Choice 1 sends its minutes as a string.
pub const SNAIL: &str = include_str!("../streams/snail.sse");

/// Five calculations of one sum (`n=5`), each with its result in the last line. Choice 0 is wrong; choice 2 is slow.
pub const SUM: &str = include_str!("../streams/sum.sse");

/// Two turns of an agent: two calls of the tool `high_water`, then the answer.
pub const AGENT: [&str; 2] = [
    include_str!("../streams/agent_calls.sse"),
    include_str!("../streams/agent_answer.sse"),
];

/// Two turns: three choices (`n=3`) with one call of the tool `book_berth` each, then the answer to one of them.
pub const RACE: [&str; 2] = [
    include_str!("../streams/race_calls.sse"),
    include_str!("../streams/race_answer.sse"),
];

/// Three answers (`n=3`), each an event as a JSON object. Choice 1 is cut at the token limit.
pub const EVENTS: &str = include_str!("../streams/events.sse");

/// The answer of choice 1 of [`EVENTS`] (`n=1`), complete.
pub const EVENT: &str = include_str!("../streams/event.sse");

/// An answer of Amazon Bedrock as binary messages: a text, and one call of the tool `high_water`.
pub const CONVERSE: &[u8] = include_bytes!("../streams/converse.bin");

/// The time between two reads.
const PAUSE: Duration = Duration::from_millis(2);

/// Splits a recorded answer into reads, regardless of line and character boundaries.
pub fn reads(recorded: &'static str) -> impl Iterator<Item = &'static [u8]> {
    const SIZES: [usize; 5] = [173, 7, 256, 1, 89];
    let mut rest = recorded.as_bytes();
    SIZES.into_iter().cycle().map_while(move |size| {
        let (read, remaining) = rest.split_at(size.min(rest.len()));
        rest = remaining;
        (!read.is_empty()).then_some(read)
    })
}

/// A recorded answer as a response body: the type of stream that an HTTP client returns, without a network.
pub fn body(
    recorded: &'static str,
) -> impl Stream<Item = io::Result<&'static [u8]>> + Send + 'static {
    stream::iter(reads(recorded)).then(|read| async move {
        tokio::time::sleep(PAUSE).await;
        Ok(read)
    })
}

/// A recorded answer that arrives in one read up to each comment `: pause`, at which the server falls silent for a while.
pub fn body_with_pauses(
    recorded: &'static str,
) -> impl Stream<Item = io::Result<&'static [u8]>> + Send + 'static {
    let parts = recorded.split(": pause\n\n").enumerate();
    stream::iter(parts).then(|(part, text)| async move {
        if part > 0 {
            tokio::time::sleep(50 * PAUSE).await;
        }
        Ok(text.as_bytes())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reads_add_up_to_the_recording() {
        for recorded in [HAIKUS, ANSWER, WEATHER, SNAIL, SUM, EVENTS, EVENT] {
            assert_eq!(
                reads(recorded).collect::<Vec<_>>().concat(),
                recorded.as_bytes()
            );
        }
    }
}
