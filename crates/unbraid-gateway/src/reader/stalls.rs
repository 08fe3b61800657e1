//! Disconnects readers that accept no data. A socket of ours notices that by itself; over HTTP/2 one stream can stall while
//! its connection does not, and then nothing polls its body.

use std::{
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::server::kill;

/// The readers whose progress is watched.
#[derive(Debug, Clone)]
pub(crate) struct Stalls(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    stall: Duration,
    base: Instant,
    readers: Mutex<Readers>,
}

#[derive(Debug, Default)]
struct Readers {
    list: Vec<Weak<Progress>>,
    /// Whether the task that watches them runs. It ends with the last reader.
    is_watched: bool,
}

/// The progress of one reader.
#[derive(Debug)]
pub(crate) struct Progress {
    /// When the last frame was given to the connection, in milliseconds since `base`, if the connection has not returned
    /// for more since then; else `WAITING`.
    written: AtomicU64,
    base: Instant,
    stall: Duration,
    switch: Option<CancellationToken>,
}

/// The connection has taken everything.
const WAITING: u64 = u64::MAX;

impl Stalls {
    pub(crate) fn new(stall: Duration) -> Self {
        Self(Arc::new(Shared {
            stall,
            base: Instant::now(),
            readers: Mutex::default(),
        }))
    }

    /// The progress of a new reader, whose connection runs in this task. Nobody watches it: a socket that takes a little at a
    /// time asks for the next frame late.
    pub(crate) fn progress(&self) -> Progress {
        Progress {
            written: AtomicU64::new(WAITING),
            base: self.0.base,
            stall: self.0.stall,
            switch: kill::current(),
        }
    }

    /// The same, and disconnects the reader once it stalls.
    pub(crate) fn register(&self) -> Arc<Progress> {
        let progress = Arc::new(self.progress());
        let mut readers = self
            .0
            .readers
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        readers.list.push(Arc::downgrade(&progress));
        if !readers.is_watched {
            readers.is_watched = true;
            tokio::spawn(watch(self.clone()));
        }
        progress
    }

    #[cfg(test)]
    pub(crate) fn entries(&self) -> usize {
        let readers = self.0.readers.lock();
        readers.unwrap_or_else(PoisonError::into_inner).list.len()
    }

    /// Disconnects the readers that have stalled; false if there are no readers.
    fn check(&self) -> bool {
        let mut readers = self
            .0
            .readers
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        readers.list.retain(|reader| {
            let Some(reader) = reader.upgrade() else {
                return false;
            };
            reader.check();
            true
        });
        readers.is_watched = !readers.list.is_empty();
        readers.is_watched
    }
}

async fn watch(stalls: Stalls) {
    // Checked often enough that a reader is not kept much longer than configured.
    let every = (stalls.0.stall / 8).clamp(Duration::from_millis(10), Duration::from_secs(2));
    loop {
        sleep(every).await;
        if !stalls.check() {
            return;
        }
    }
}

impl Progress {
    pub(crate) fn has_written(&self, now: Instant) {
        let millis = now.duration_since(self.base).as_millis();
        let millis = u64::try_from(millis).unwrap_or(WAITING - 1);
        self.written.store(millis, Ordering::Relaxed);
    }

    pub(crate) fn waits(&self) {
        self.written.store(WAITING, Ordering::Relaxed);
    }

    /// Whether the connection has accepted nothing for too long.
    pub(crate) fn has_stalled(&self) -> bool {
        // A body that has nothing to write is not polled again while the socket still holds its last frame. Then only the
        // socket notices.
        let is_switched_off = self.switch.as_ref().is_some_and(|s| s.is_cancelled());
        is_switched_off || self.is_stalling()
    }

    fn is_stalling(&self) -> bool {
        let written = self.written.load(Ordering::Relaxed);
        if written == WAITING {
            return false;
        }
        let since = self
            .base
            .elapsed()
            .saturating_sub(Duration::from_millis(written));
        since >= self.stall
    }

    fn check(&self) {
        if self.is_stalling()
            && let Some(switch) = &self.switch
        {
            switch.cancel();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_whose_socket_stalls_while_its_body_waits_has_stalled() {
        let switch = CancellationToken::new();
        let progress = Progress {
            written: AtomicU64::new(WAITING),
            base: Instant::now(),
            stall: Duration::from_secs(1),
            switch: Some(switch.clone()),
        };
        assert!(!progress.has_stalled());
        switch.cancel();
        assert!(progress.has_stalled());
    }
}
