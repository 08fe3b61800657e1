//! What of the comparison is run: `NAME=VALUE` after the mode.

use std::{
    io,
    path::PathBuf,
    time::{Duration, Instant},
};

use crate::stamps::now;

/// The changes of a run.
#[derive(Debug, Default)]
pub(super) struct Options {
    /// Candidates whose names contain one of these words, in lower case; empty for all.
    only: Vec<String>,
    /// In place of the rounds of the effort.
    pub(super) rounds: Option<usize>,
    /// In place of the generations of the effort: a smaller load for all candidates, on slow processors.
    pub(super) generations: Option<u32>,
    /// Another command `unbraid`, whose gateways are rows, too.
    pub(super) against: Option<PathBuf>,
    /// When no further run begins.
    deadline: Option<Instant>,
}

impl Options {
    pub(super) fn read(changes: &[&str]) -> io::Result<Self> {
        let mut options = Self::default();
        for change in changes {
            let unknown = || io::Error::other(format!("{change} is not an option of the gateway"));
            let (name, value) = change.split_once('=').ok_or_else(unknown)?;
            match name {
                "only" => {
                    let words = value.split(',').filter(|word| !word.is_empty());
                    options.only.extend(words.map(str::to_lowercase));
                }
                "rounds" => options.rounds = Some(value.parse().map_err(io::Error::other)?),
                "generations" => {
                    options.generations = Some(value.parse().map_err(io::Error::other)?);
                }
                "minutes" => {
                    let minutes: u64 = value.parse().map_err(io::Error::other)?;
                    options.deadline = now().checked_add(Duration::from_secs(60 * minutes));
                }
                "against" => options.against = Some(value.into()),
                _ => return Err(unknown()),
            }
        }
        Ok(options)
    }

    /// Whether a candidate takes part.
    pub(super) fn takes(&self, name: &str) -> bool {
        let name = name.to_lowercase();
        self.only.is_empty() || self.only.iter().any(|word| name.contains(word))
    }

    /// Whether the time is over.
    pub(super) fn is_over(&self) -> bool {
        self.deadline.is_some_and(|deadline| deadline <= now())
    }

    /// The time that is left, at most `limit`.
    pub(super) fn left(&self, limit: Duration) -> Duration {
        let left = |deadline: Instant| deadline.saturating_duration_since(now());
        self.deadline.map_or(limit, |at| left(at).min(limit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_are_chosen_by_a_part_of_their_names() {
        let options = Options::read(&["only=direct,LIVE", "rounds=2", "generations=500"]).unwrap();
        assert_eq!(options.rounds, Some(2));
        assert_eq!(options.generations, Some(500));
        assert!(options.takes("direct") && options.takes("unbraid live"));
        assert!(!options.takes("unbraid memory"));
        assert!(Options::read(&[]).unwrap().takes("unbraid memory"));
        for wrong in ["only", "round=1", "rounds=x", "generations=-1"] {
            assert!(Options::read(&[wrong]).is_err(), "{wrong}");
        }
    }

    #[test]
    fn no_run_begins_after_the_last_minute() {
        let limit = Duration::from_secs(90);
        let unbounded = Options::read(&[]).unwrap();
        assert!(!unbounded.is_over());
        assert_eq!(unbounded.left(limit), limit);
        let bounded = Options::read(&["minutes=1"]).unwrap();
        assert!(!bounded.is_over() && bounded.left(limit) <= Duration::from_secs(60));
        assert!(Options::read(&["minutes=0"]).unwrap().is_over());
    }
}
