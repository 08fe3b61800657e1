//! When each piece was written, and when a consumer had it in its hand.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{contender::Take, table::rounded};

/// A table by the number of a piece, which is also its text; its writer and its consumers share it.
#[derive(Debug, Clone)]
pub(crate) struct Stamps(Arc<Table>);

#[derive(Debug)]
struct Table {
    origin: Instant,
    pieces: Vec<Piece>,
}

/// Nanoseconds since the origin; zero for what has not been.
#[derive(Debug, Default)]
struct Piece {
    written: AtomicU64,
    had: AtomicU64,
}

impl Stamps {
    pub(crate) fn new(pieces: usize) -> Self {
        let mut all = Vec::new();
        all.resize_with(pieces, Piece::default);
        Self(Arc::new(Table {
            origin: now(),
            pieces: all,
        }))
    }

    /// The piece of this number is about to be written.
    pub(crate) fn written(&self, number: usize) {
        if let Some(piece) = self.0.pieces.get(number) {
            piece.written.store(self.elapsed(), SeqCst);
        }
    }

    /// A consumer has the piece of this number in its hand.
    pub(crate) fn had(&self, number: usize) {
        let at = self.elapsed();
        if let Some(piece) = self.0.pieces.get(number) {
            piece.had.store(at, SeqCst);
        }
    }

    /// How long each piece took, without the first ones; an error if one never arrived.
    pub(crate) fn times(&self, warm: usize) -> io::Result<Vec<Duration>> {
        let time = |piece: &Piece| {
            let (written, had) = (piece.written.load(SeqCst), piece.had.load(SeqCst));
            had.checked_sub(written)
                .filter(|_| written > 0)
                .map(Duration::from_nanos)
                .ok_or_else(|| io::Error::other("a piece has not arrived"))
        };
        self.0.pieces.iter().skip(warm).map(time).collect()
    }

    fn elapsed(&self) -> u64 {
        u64::try_from(self.0.origin.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

impl Take for Stamps {
    fn take(&self, piece: &str, _kept: &mut String) {
        if let Ok(number) = piece.parse() {
            self.had(number);
        }
    }
}

/// What many times come to, in microseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spread {
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    pub(crate) max: f64,
    count: usize,
}

impl Spread {
    pub(crate) fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        let us = |time: Option<&Duration>| time.map_or(0.0, |time| time.as_secs_f64() * 1e6);
        let at = |share: usize| us(times.get(times.len() * share / 100));
        Self {
            p50: at(50),
            p99: at(99),
            max: us(times.last()),
            count: times.len(),
        }
    }

    pub(crate) fn to_json(self) -> Value {
        json!({
            "p50_us": rounded(self.p50),
            "p99_us": rounded(self.p99),
            "max_us": rounded(self.max),
            "updates": self.count,
        })
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a benchmark wants the wall clock and never runs under paused time"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_that_never_arrived_is_an_error() {
        let stamps = Stamps::new(3);
        (0..3).for_each(|number| stamps.written(number));
        stamps.take("1", &mut String::new());
        stamps.take("2", &mut String::new());
        assert_eq!(stamps.times(1).unwrap().len(), 2);
        assert!(stamps.times(0).is_err());
    }

    #[test]
    fn a_spread_is_of_all_times() {
        let spread = Spread::of((0..100).rev().map(Duration::from_micros).collect());
        assert_eq!((spread.p50, spread.p99, spread.max), (50.0, 99.0, 99.0));
    }
}
