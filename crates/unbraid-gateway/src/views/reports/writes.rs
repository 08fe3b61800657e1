//! What the operator reads about a log that does not take events: its disk or its memory is full, or it is away.

use std::{
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::time::Instant;
use unbraid_log::{Appended, LogError, ProducerObserver};

use super::is_due;
use crate::metrics::Metrics;

/// Observes all producers of a gateway: for the metrics, and for one line when their log does not take events, and one when it
/// has taken them, whatever the number of streams and attempts meanwhile.
#[derive(Debug)]
pub(crate) struct WriteReports {
    metrics: Metrics,
    state: Mutex<State>,
    failures: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    /// How many streams are degraded now.
    degraded: u64,
    refusals: Option<Refusals>,
    /// When the last refusals were reported.
    reported: Option<Instant>,
}

/// The log does not take events.
#[derive(Debug)]
struct Refusals {
    since: Instant,
    streams: u64,
    /// Streams whose events were not taken for so long that they were dropped.
    dropped: u64,
    is_reported: bool,
}

impl WriteReports {
    pub(crate) fn new(metrics: Metrics) -> Self {
        Self {
            metrics,
            state: Mutex::default(),
            failures: AtomicU64::new(0),
        }
    }

    /// How many writes have failed so far.
    pub(crate) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Notes that the log has not taken what was given to it.
    pub(crate) fn note_failure(&self) {
        self.failures.fetch_add(1, Ordering::Relaxed);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change is complete before anything that could panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reports the refusals, unless that was done.
    fn warn(mut state: MutexGuard<'_, State>, error: &LogError) {
        let State {
            refusals, reported, ..
        } = &mut *state;
        let Some(refusals) = refusals.as_mut().filter(|refusals| !refusals.is_reported) else {
            return;
        };
        refusals.is_reported = is_due(reported);
        let reports = refusals.is_reported;
        drop(state);
        if reports {
            tracing::warn!(%error, "the log does not take events: they are kept in memory meanwhile");
        }
    }

    fn degraded_by(&self, error: &LogError) {
        let mut state = self.state();
        state.degraded += 1;
        // A log that has lost events takes them again.
        if error.is_temporary() || *error == LogError::Full {
            let refusals = state.refusals.get_or_insert_with(|| Refusals {
                since: Instant::now(),
                streams: 0,
                dropped: 0,
                is_reported: false,
            });
            refusals.streams += 1;
            Self::warn(state, error);
        }
    }

    fn recovered(&self) {
        let mut state = self.state();
        state.degraded = state.degraded.saturating_sub(1);
        if state.degraded > 0 {
            return;
        }
        let refusals = state.refusals.take();
        drop(state);
        let Some(refusals) = refusals else {
            return;
        };
        let seconds = refusals.since.elapsed().as_secs_f32();
        let Refusals {
            streams, dropped, ..
        } = refusals;
        if dropped > 0 {
            tracing::warn!(
                seconds,
                streams,
                dropped,
                "the log did not take the events of streams for as long as they were kept: they were dropped"
            );
        } else if refusals.is_reported {
            tracing::info!(seconds, streams, "no events wait for the log any more");
        }
    }
}

impl ProducerObserver for WriteReports {
    fn appended(&self, result: Result<Appended, &LogError>, after: Duration) {
        self.metrics.append_ended(result, after);
        if let Err(error) = result {
            self.note_failure();
            Self::warn(self.state(), error);
        }
    }

    fn degraded(&self, cause: Option<&LogError>) {
        self.metrics.stream_degraded(cause.is_some());
        match cause {
            Some(error) => self.degraded_by(error),
            None => self.recovered(),
        }
    }

    fn gave_up(&self) {
        let mut state = self.state();
        if let Some(refusals) = &mut state.refusals {
            refusals.dropped += 1;
            return;
        }
        drop(state);
        // A stream that has failed is not among those that wait, but what readers have got of it may be missing in the log.
        tracing::warn!(
            "the log did not take the last events of a stream for as long as they were kept: they were dropped"
        );
    }

    fn repaired(&self, records: u64) {
        self.metrics.records_repaired(records);
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;
    use crate::views::reports::{PAUSE, tests::Lines};

    #[tokio::test(start_paused = true)]
    async fn a_log_that_refuses_events_is_reported_once_and_so_is_its_end() {
        let lines = Lines::default();
        let _captured = tracing::subscriber::set_default(lines.clone());
        let reports = WriteReports::new(Metrics::new("other"));
        let full = LogError::unavailable("full");
        for _ in 0..10 {
            reports.degraded(Some(&full));
            for _ in 0..10 {
                reports.appended(Err(&full), Duration::ZERO);
                advance(PAUSE).await;
            }
        }
        assert_eq!(lines.count(), 1, "its begin");
        for left in (0..10).rev() {
            assert_eq!(lines.count(), 1, "{left}");
            reports.appended(Ok(Appended::New), Duration::ZERO);
            reports.degraded(None);
        }
        assert_eq!(lines.count(), 2, "its end");
    }

    #[tokio::test(start_paused = true)]
    async fn a_log_that_refuses_some_events_and_takes_others_is_reported_at_times() {
        let lines = Lines::default();
        let _captured = tracing::subscriber::set_default(lines.clone());
        let reports = WriteReports::new(Metrics::new("other"));
        for _ in 0..100 {
            reports.degraded(Some(&LogError::Full));
            reports.degraded(None);
        }
        assert_eq!(lines.count(), 2);
        // One that goes on is reported when the pause is over.
        reports.degraded(Some(&LogError::Full));
        assert_eq!(lines.count(), 2);
        advance(PAUSE).await;
        reports.appended(Err(&LogError::Full), Duration::ZERO);
        assert_eq!(lines.count(), 3);
    }

    #[test]
    fn events_that_were_dropped_are_not_reported_as_taken() {
        let lines = Lines::default();
        let _captured = tracing::subscriber::set_default(lines.clone());
        let reports = WriteReports::new(Metrics::new("other"));
        for _ in 0..2 {
            reports.degraded(Some(&LogError::unavailable("down")));
        }
        reports.gave_up();
        for _ in 0..2 {
            reports.degraded(None);
        }
        assert_eq!((lines.count(), lines.warnings()), (2, 2));
        reports.degraded(Some(&LogError::unavailable("down")));
        reports.degraded(None);
        assert_eq!(lines.count(), 2, "too soon after the last outage");
    }

    #[test]
    fn events_of_a_failed_stream_that_were_dropped_are_reported() {
        let lines = Lines::default();
        let _captured = tracing::subscriber::set_default(lines.clone());
        WriteReports::new(Metrics::new("other")).gave_up();
        assert_eq!((lines.count(), lines.warnings()), (1, 1));
    }

    #[test]
    fn a_log_that_is_repaired_has_refused_nothing() {
        let lines = Lines::default();
        let _captured = tracing::subscriber::set_default(lines.clone());
        let reports = WriteReports::new(Metrics::new("other"));
        reports.degraded(Some(&LogError::Unknown));
        reports.degraded(None);
        assert_eq!(lines.count(), 0);
    }
}
