//! `Check`: whether a stream was seen on the connection.

use std::{
    future::Future,
    sync::atomic::{AtomicU64, Ordering},
};

use tokio::{sync::Mutex, time::timeout};

use super::{ANSWER, Failure};

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
        // Of many callers one asks the server. If it fails, the others ask, too, but not in turn: a check that has begun before this
        // process was suspended fails as soon as the process runs again, and says nothing about the log for a call that begins
        // then. Nobody may poll that one, if it is of a reader whose client accepts nothing more: so they wait only so long.
        let one = self.one.try_lock();
        if one.is_err() {
            drop(timeout(ANSWER, self.one.lock()).await);
            if self.is_done(epoch) {
                return Ok(());
            }
        }
        check().await?;
        self.epoch.store(epoch, Ordering::Relaxed);
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures::future::join_all;
    use tokio::time::{Instant, sleep};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn callers_that_wait_for_a_check_that_fails_check_at_the_same_time() {
        let check = Check::default();
        let asked = AtomicU64::new(0);
        let call = async |succeeds: bool| {
            let ask = async || {
                asked.fetch_add(1, Ordering::Relaxed);
                sleep(ANSWER / 2).await;
                match succeeds {
                    true => Ok(()),
                    false => Err(Failure::TimedOut),
                }
            };
            check.once(7, ask).await
        };
        for (succeeds, total) in [(false, 9), (true, 10), (true, 10)] {
            let start = Instant::now();
            let results = join_all((0..9).map(|_| call(succeeds))).await;
            assert!(results.iter().all(|result| result.is_ok() == succeeds));
            assert!(start.elapsed() <= ANSWER);
            assert_eq!(asked.load(Ordering::Relaxed), total);
        }
    }

    /// The first check has begun before the process was suspended.
    #[tokio::test(start_paused = true)]
    async fn a_call_does_not_fail_by_a_check_that_began_before_it() {
        let check = Check::default();
        let first = check.once(7, || async {
            sleep(Duration::from_millis(1)).await;
            Err(Failure::TimedOut)
        });
        let second = check.once(7, async || Ok(()));
        let results = tokio::join!(first, second);
        assert_eq!(results, (Err(Failure::TimedOut), Ok(())));
    }

    /// A stream of records asks while it is read, and nobody reads it while its client accepts nothing.
    #[tokio::test(start_paused = true)]
    async fn a_caller_that_is_not_polled_does_not_keep_the_others_from_the_server() {
        let check = Check::default();
        let mut first = Box::pin(check.once(7, || async {
            sleep(Duration::from_millis(1)).await;
            Ok(())
        }));
        let mut second = Box::pin(check.once(7, async || Ok(())));
        assert!(futures::poll!(&mut first).is_pending());
        assert!(futures::poll!(&mut second).is_pending());
        let start = Instant::now();
        assert_eq!(check.once(7, async || Ok(())).await, Ok(()));
        assert_eq!(check.once(7, async || Ok(())).await, Ok(()));
        assert!(start.elapsed() < ANSWER * 2);
        // The lock is given to the second one, which is not polled either.
        check.repeat();
        assert_eq!(first.await, Ok(()));
        check.repeat();
        assert_eq!(check.once(7, async || Ok(())).await, Ok(()));
        drop(second);
    }
}
