//! Instructions and cache misses, where the system permits a process to count its own.

use std::fmt;

/// What was counted in user space.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Counts {
    pub(crate) instructions: u64,
    pub(crate) cache_misses: u64,
}

/// Why there are no counts, for a table.
pub(crate) struct Unavailable;

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "instructions and cache misses are not available: perf_event_open is not permitted here, or the machine has no such counters",
        )
    }
}

/// Counts in this thread, and in every thread that it starts while the counters exist.
#[cfg(target_os = "linux")]
pub(crate) struct Counters(Option<[perf_event::Counter; 2]>);

#[cfg(target_os = "linux")]
impl Counters {
    pub(crate) fn start() -> Self {
        use perf_event::{Builder, Counter, events::Hardware};
        let counter = |kind| {
            let mut builder = Builder::new().kind(kind);
            builder.inherit(true);
            let mut counter: Counter = builder.build().ok()?;
            counter.enable().ok()?;
            Some(counter)
        };
        let instructions = counter(Hardware::INSTRUCTIONS);
        let cache_misses = counter(Hardware::CACHE_MISSES);
        Self(Option::zip(instructions, cache_misses).map(<[_; 2]>::from))
    }

    /// The counts since the start, those of running threads included; `None` if the system does not count.
    pub(crate) fn read(&mut self) -> Option<Counts> {
        let [instructions, cache_misses] = self.0.as_mut()?;
        Some(Counts {
            instructions: instructions.read().ok()?,
            cache_misses: cache_misses.read().ok()?,
        })
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) struct Counters;

#[cfg(not(target_os = "linux"))]
impl Counters {
    pub(crate) fn start() -> Self {
        Self
    }

    pub(crate) fn read(&mut self) -> Option<Counts> {
        None
    }
}
