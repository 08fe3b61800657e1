//! Whether the log takes events, found out before a provider is asked.
//!
//! A log may answer and still refuse writes: its memory or its disk is full, it is a replica, or replicas are missing. A
//! request that is sent to a provider before that shows is billed for an answer that nobody gets.

use std::time::Duration;

use tokio::{
    sync::Mutex,
    time::{Instant, timeout},
};
use unbraid_log::{Event, LogError, LogStore, Meta, RecordBuilder, Seq, StreamId};

use crate::{auth::links::unix_now, limits::CHECK_TIMEOUT};

/// How long a success counts, unless a write has failed since, and how long a failure does.
const WORKS_FOR: Duration = Duration::from_secs(5);
const FAILS_FOR: Duration = Duration::from_secs(1);

/// Writes a stream of its own from time to time, and erases it.
#[derive(Debug, Default)]
pub(crate) struct WriteCheck {
    last: Mutex<Option<Checked>>,
}

#[derive(Debug)]
struct Checked {
    at: Instant,
    /// How many writes had failed before it.
    failures: u64,
    result: Result<(), LogError>,
}

impl Checked {
    fn counts(&self, failures: u64) -> bool {
        match self.result {
            Ok(()) => self.failures == failures && self.at.elapsed() < WORKS_FOR,
            Err(_) => self.at.elapsed() < FAILS_FOR,
        }
    }
}

impl WriteCheck {
    /// The error of a log that does not take events. `failures` is how many writes of any stream have failed so far.
    ///
    /// Requests that arrive meanwhile wait for the same result.
    pub(crate) async fn run(&self, log: &dyn LogStore, failures: u64) -> Result<(), LogError> {
        let mut last = self.last.lock().await;
        if let Some(known) = last.as_ref().filter(|last| last.counts(failures)) {
            return known.result.clone();
        }
        let result = write_and_erase(log).await;
        *last = Some(Checked {
            at: Instant::now(),
            failures,
            result: result.clone(),
        });
        result
    }
}

async fn write_and_erase(log: &dyn LogStore) -> Result<(), LogError> {
    let slow = |_elapsed| {
        Err(LogError::unavailable(
            "the log did not take an event in time",
        ))
    };
    let id = StreamId::random()?;
    let result = timeout(CHECK_TIMEOUT, write(log, &id)).await;
    // A stream that stays behind expires like that of a lost producer.
    let _erased = timeout(CHECK_TIMEOUT, log.erase(&id)).await;
    result.unwrap_or_else(slow)
}

async fn write(log: &dyn LogStore, id: &StreamId) -> Result<(), LogError> {
    let meta = Meta::new("/readyz", unix_now());
    let mut writer = log.open(id, &meta).await?;
    let mut events = RecordBuilder::new(Seq(1));
    events.push(&Event::chunk(&[], b"{}"));
    while let Some(record) = events.take() {
        writer.append(&record).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::time::sleep;
    use unbraid_log::internal::scripted::{Engine, Fault, TestLog};

    use super::*;

    async fn calls(log: &TestLog, check: &WriteCheck, failures: u64) -> (bool, usize) {
        let before = log.calls();
        let result = check.run(log, failures).await;
        (result.is_ok(), log.calls() - before)
    }

    #[tokio::test(start_paused = true)]
    async fn a_log_that_refuses_writes_is_found_out_once_a_second() {
        let log: Arc<TestLog> = Engine::new(Duration::from_secs(15)).gateway();
        let check = WriteCheck::default();
        for fault in [Fault::Full, Fault::Down, Fault::Hang] {
            log.set(fault);
            let (works, asked) = calls(&log, &check, 0).await;
            assert!(!works && asked > 0, "{fault:?}");
            assert_eq!(calls(&log, &check, 0).await, (false, 0), "{fault:?}");
            sleep(FAILS_FOR).await;
        }
        log.set(None);
        assert!(calls(&log, &check, 0).await.0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_log_that_takes_events_is_asked_again_after_a_while_or_after_a_failure() {
        let log: Arc<TestLog> = Engine::new(Duration::from_secs(15)).gateway();
        let check = WriteCheck::default();
        let (works, first) = calls(&log, &check, 0).await;
        assert!(works && first > 0);
        assert_eq!(calls(&log, &check, 0).await, (true, 0));
        assert_eq!(
            calls(&log, &check, 1).await,
            (true, first),
            "a failed write"
        );
        assert_eq!(calls(&log, &check, 1).await, (true, 0));
        sleep(WORKS_FOR).await;
        assert_eq!(calls(&log, &check, 1).await, (true, first), "a while");
    }
}
