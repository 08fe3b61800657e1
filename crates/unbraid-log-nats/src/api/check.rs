//! `Check`: whether a stream was seen on the connection.

use std::{
    future::Future,
    sync::atomic::{AtomicU64, Ordering},
};

use tokio::sync::Mutex;

use super::Failure;

/// No connection has this number.
const UNCHECKED: u64 = u64::MAX;

#[derive(Debug)]
pub(super) struct Check {
    /// The connection on which the stream was known to exist.
    epoch: AtomicU64,
    one: Mutex<()>,
}

impl Default for Check {
    fn default() -> Self {
        Self {
            epoch: AtomicU64::new(UNCHECKED),
            one: Mutex::default(),
        }
    }
}

impl Check {
    /// Checks the stream, unless that was done on this connection.
    pub(super) async fn once<C>(&self, epoch: u64, check: impl FnOnce() -> C) -> Result<(), Failure>
    where
        C: Future<Output = Result<(), Failure>>,
    {
        if self.is_done(epoch) {
            return Ok(());
        }
        // Of many callers one asks the server.
        let _one = self.one.lock().await;
        if !self.is_done(epoch) {
            check().await?;
            self.epoch.store(epoch, Ordering::Relaxed);
        }
        Ok(())
    }

    /// The next call checks it again.
    pub(super) fn repeat(&self) {
        self.epoch.store(UNCHECKED, Ordering::Relaxed);
    }

    fn is_done(&self, epoch: u64) -> bool {
        self.epoch.load(Ordering::Relaxed) == epoch
    }
}
