//! What the examples share: recorded answers, and a body that brings one as a network would.

mod server;

use std::{io, time::Duration};

pub use server::serve;

use futures::{Stream, StreamExt, stream};

/// Four haikus on rain (`n=4`). The choices appear as 2, 0, 3, 1, and choice 3 is cut at the token limit.
pub const HAIKUS: &str = include_str!("../streams/haikus.sse");

/// One answer of one sentence (`n=1`).
pub const ANSWER: &str = include_str!("../streams/answer.sse");

/// Two answers (`n=2`) that call a tool twice each, the fragments of all four calls interleaved.
pub const WEATHER: &str = include_str!("../streams/weather.sse");

/// Three answers (`n=3`), each a call of the tool `answer`. Choice 0 is done first; choice 1 gives its minutes in words.
pub const SNAIL: &str = include_str!("../streams/snail.sse");

/// Five ways to one sum (`n=5`), each with its answer in the last line. Choice 0 is wrong; choice 2 takes its time.
pub const SUM: &str = include_str!("../streams/sum.sse");

/// Time between two reads.
const PAUSE: Duration = Duration::from_millis(2);

/// Cuts a recorded answer into reads that heed neither lines nor characters.
pub fn reads(recorded: &'static str) -> impl Iterator<Item = &'static [u8]> {
    const SIZES: [usize; 5] = [173, 7, 256, 1, 89];
    let mut rest = recorded.as_bytes();
    SIZES.into_iter().cycle().map_while(move |size| {
        let (read, behind) = rest.split_at(size.min(rest.len()));
        rest = behind;
        (!read.is_empty()).then_some(read)
    })
}

/// A recorded answer as the body of a response: the same type of stream that an HTTP client gives, no network.
pub fn body(
    recorded: &'static str,
) -> impl Stream<Item = io::Result<&'static [u8]>> + Send + 'static {
    stream::iter(reads(recorded)).then(|read| async move {
        tokio::time::sleep(PAUSE).await;
        Ok(read)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reads_add_up_to_the_recording() {
        for recorded in [HAIKUS, ANSWER, WEATHER, SNAIL, SUM] {
            assert_eq!(
                reads(recorded).collect::<Vec<_>>().concat(),
                recorded.as_bytes()
            );
        }
    }
}
