//! Answers that are known in advance, byte for byte.

use std::time::Duration;

use unbraid_testkit::cut::Rng;

/// One answer of the upstream: its choices in the order in which they are interleaved.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    /// What the request asked for, in its prompt.
    pub(super) number: u64,
    /// How many choices it has.
    pub(super) choices: u32,
    /// Its chunks, without `[DONE]`.
    pub(super) chunks: Vec<Chunk>,
}

/// One event of an answer. It concerns one choice, and no two chunks of a run are equal.
#[derive(Debug, Clone)]
pub(super) struct Chunk {
    pub(super) choice: u32,
    /// The data of the event.
    pub(super) data: String,
    /// How long the upstream waits before it.
    pub(super) pause: Duration,
}

/// The part of a stream that a client reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum View {
    /// All choices.
    Combined,
    /// One choice, as index 0.
    Choice(u32),
}

impl View {
    /// Its path below that of the stream.
    pub(super) fn path(self) -> String {
        match self {
            Self::Combined => "events".into(),
            Self::Choice(index) => format!("choices/{index}"),
        }
    }
}

/// An event that a view has to contain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Expected {
    pub(super) choice: u32,
    pub(super) data: String,
}

/// The shortest and the longest time of a generation, in milliseconds.
const LENGTH_MS: (usize, usize) = (1_500, 7_000);

impl Answer {
    /// The answer of a number. The same number and seed give the same answer.
    pub(super) fn new(number: u64, seed: u64) -> Self {
        let mut rng = Rng::new(seed ^ number.wrapping_mul(0x9e37_79b9));
        let choices = 1 + rng.below(4) as u32;
        let lengths: Vec<usize> = (0..choices).map(|_| 4 + rng.below(30)).collect();
        let total: usize = lengths.iter().map(|length| length + 1).sum();
        let length = LENGTH_MS.0 + rng.below(LENGTH_MS.1 - LENGTH_MS.0);
        let mut open: Vec<(u32, usize, usize)> =
            (0..choices).zip(lengths).map(|(c, l)| (c, 0, l)).collect();
        let mut chunks = Vec::with_capacity(total);
        while !open.is_empty() {
            let slot = rng.below(open.len());
            let Some((choice, position, length_of_choice)) = open.get_mut(slot) else {
                break;
            };
            let data = chunk(number, *choice, *position, *length_of_choice, &mut rng);
            // Some chunks arrive in one read, and others after a silence.
            let pause = match rng.chance(0.3) {
                true => Duration::ZERO,
                false => Duration::from_millis(rng.below(1 + length * 2 / total * 10 / 7) as u64),
            };
            chunks.push(Chunk {
                choice: *choice,
                data,
                pause,
            });
            if *position == *length_of_choice {
                open.swap_remove(slot);
            } else {
                *position += 1;
            }
        }
        Self {
            number,
            choices,
            chunks,
        }
    }

    /// The events of a view, without its last one.
    pub(super) fn projection(&self, view: View) -> Vec<Expected> {
        let chunks = self.chunks.iter();
        let chunks = chunks.filter(|chunk| match view {
            View::Combined => true,
            View::Choice(choice) => chunk.choice == choice,
        });
        let expected = chunks.map(|chunk| Expected {
            choice: chunk.choice,
            data: match view {
                View::Combined => chunk.data.clone(),
                View::Choice(choice) => {
                    chunk
                        .data
                        .replacen(&index_field(choice), &index_field(0), 1)
                }
            },
        });
        expected.collect()
    }

    /// The body of the request for it.
    pub(super) fn request(&self) -> String {
        format!(
            r#"{{"model":"chaos","n":{},"stream":true,"messages":[{{"role":"user","content":"{}"}}]}}"#,
            self.choices, self.number
        )
    }
}

fn index_field(choice: u32) -> String {
    format!(r#""index":{choice},"#)
}

/// One chunk in so many is as long as a read.
const LONG_CHUNKS: f64 = 0.02;

fn chunk(number: u64, choice: u32, position: usize, length: usize, rng: &mut Rng) -> String {
    let index = index_field(choice);
    let delta = if position == length {
        r#""delta":{},"finish_reason":"stop""#.to_owned()
    } else {
        let role = if position == 0 {
            r#""role":"assistant","#
        } else {
            ""
        };
        let size = if rng.chance(LONG_CHUNKS) {
            20_000
        } else {
            rng.below(40)
        };
        let filler = "abcdefgh ".chars().cycle().skip(rng.below(9)).take(size);
        let filler: String = filler.collect();
        format!(
            r#""delta":{{{role}"content":"{number}/{choice}/{position} {filler}"}},"finish_reason":null"#
        )
    };
    format!(
        r#"{{"id":"chaos-{number}","object":"chat.completion.chunk","created":1790000000,"model":"chaos","choices":[{{{index}{delta}}}]}}"#
    )
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn an_answer_depends_on_its_number_and_the_seed_only() {
        let data = |number, seed| -> Vec<String> {
            let chunks = Answer::new(number, seed).chunks;
            chunks.into_iter().map(|chunk| chunk.data).collect()
        };
        assert_eq!(data(7, 1), data(7, 1));
        assert_ne!(data(7, 1), data(8, 1));
        assert_ne!(data(7, 1), data(7, 2));
    }

    #[test]
    fn no_two_chunks_are_equal_and_each_choice_is_an_ordinary_stream() {
        for number in 0..50 {
            let answer = Answer::new(number, 3);
            let combined = answer.projection(View::Combined);
            let distinct: HashSet<_> = combined.iter().map(|chunk| &chunk.data).collect();
            assert_eq!(distinct.len(), combined.len());
            for choice in 0..answer.choices {
                let events = answer.projection(View::Choice(choice));
                assert!(
                    events
                        .iter()
                        .all(|event| event.data.contains(r#"[{"index":0,"#))
                );
                let last = events.last().unwrap();
                assert!(last.data.contains(r#""finish_reason":"stop""#));
                for event in events {
                    let _json: serde_json::Value = serde_json::from_str(&event.data).unwrap();
                }
            }
        }
    }

    #[test]
    fn a_generation_takes_some_seconds() {
        let total = |number| -> Duration {
            let chunks = Answer::new(number, 5).chunks;
            chunks.iter().map(|chunk| chunk.pause).sum()
        };
        let mean = (0..200).map(total).sum::<Duration>() / 200;
        assert!(
            mean > Duration::from_secs(2) && mean < Duration::from_secs(6),
            "{mean:?}"
        );
    }
}
