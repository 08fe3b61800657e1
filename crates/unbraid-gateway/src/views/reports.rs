//! What the operator reads about a log that fails.

mod writes;

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;
use unbraid_log::LogError;

pub(crate) use writes::WriteReports;

/// The shortest time between two warnings of the same kind.
const PAUSE: Duration = Duration::from_secs(10);

/// Reports an outage of the log once, and its end, whatever the number of requests that meet it.
///
/// Hundreds of readers connect again each second while the log is down. A line for each would hide all others.
#[derive(Debug, Default)]
pub(crate) struct LogReports(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The log does not answer.
    silence: Outages,
    /// It answers, and does not take what requests write.
    refusal: Outages,
    /// When the last answer was reported with which no request can be served.
    unusable: Option<Instant>,
}

/// The outages of one kind.
#[derive(Debug, Default)]
struct Outages {
    current: Option<Outage>,
    /// When the last one was reported.
    reported: Option<Instant>,
}

#[derive(Debug)]
struct Outage {
    since: Instant,
    requests: u64,
    is_reported: bool,
}

impl Outages {
    /// Notes a request that failed. Returns whether that is to be reported.
    fn failed(&mut self) -> bool {
        let outage = self.current.get_or_insert_with(|| Outage {
            since: Instant::now(),
            requests: 0,
            is_reported: false,
        });
        outage.requests += 1;
        let reports = !outage.is_reported && is_due(&mut self.reported);
        outage.is_reported |= reports;
        reports
    }

    /// Notes the end. Returns the outage if that is to be reported.
    fn end(&mut self) -> Option<Outage> {
        self.current.take().filter(|outage| outage.is_reported)
    }
}

/// Reports the end of an outage. Not under the lock: a subscriber is foreign code.
fn report_end(outage: Option<Outage>, message: &str) {
    if let Some(Outage {
        since, requests, ..
    }) = outage
    {
        let seconds = since.elapsed().as_secs_f32();
        tracing::info!(seconds, requests, "{message}");
    }
}

/// Whether a warning is due, and notes it.
fn is_due(last: &mut Option<Instant>) -> bool {
    let is_due = last.is_none_or(|last| last.elapsed() >= PAUSE);
    if is_due {
        *last = Some(Instant::now());
    }
    is_due
}

impl LogReports {
    fn state(&self) -> MutexGuard<'_, State> {
        // Every change is complete before anything that could panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a request that the log could not serve.
    pub(super) fn failed(&self, error: &LogError) {
        if error.is_temporary() {
            let reports = self.state().silence.failed();
            if reports {
                tracing::warn!(%error, "the log failed: requests that need it get 503");
            }
            return;
        }
        let reports = is_due(&mut self.state().unusable);
        if reports && *error == LogError::Full {
            tracing::warn!(%error, "a request that needs the log gets 503");
        } else if reports {
            tracing::warn!(%error, "a stream cannot be read");
        }
    }

    /// Notes an answer of the log.
    pub(super) fn answered(&self) {
        let outage = self.state().silence.end();
        report_end(outage, "the log answers again");
    }

    /// Notes that the log does not take events. Its answers do not end that.
    pub(super) fn refused(&self, error: &LogError) {
        let reports = self.state().refusal.failed();
        if reports {
            tracing::warn!(%error, "the log does not take events: requests that need it get 503");
        }
    }

    /// Notes that the log has taken an event.
    pub(super) fn took_event(&self) {
        let outage = self.state().refusal.end();
        report_end(outage, "the log takes events again");
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    use tokio::time::advance;
    use tracing::{
        Event, Metadata, Subscriber,
        span::{Attributes, Id, Record},
    };

    use super::*;

    /// Counts the lines of this thread.
    #[derive(Default, Clone)]
    pub(crate) struct Lines(Arc<[AtomicUsize; 2]>);

    impl Lines {
        pub(crate) fn count(&self) -> usize {
            self.0[0].load(Ordering::Relaxed)
        }

        /// Those of them that warn.
        pub(in crate::views) fn warnings(&self) -> usize {
            self.0[1].load(Ordering::Relaxed)
        }
    }

    impl Subscriber for Lines {
        fn enabled(&self, metadata: &Metadata<'_>) -> bool {
            *metadata.level() <= tracing::Level::INFO && metadata.is_event()
        }

        fn new_span(&self, _: &Attributes<'_>) -> Id {
            Id::from_u64(1)
        }

        fn record(&self, _: &Id, _: &Record<'_>) {}

        fn record_follows_from(&self, _: &Id, _: &Id) {}

        fn event(&self, event: &Event<'_>) {
            self.0[0].fetch_add(1, Ordering::Relaxed);
            if *event.metadata().level() == tracing::Level::WARN {
                self.0[1].fetch_add(1, Ordering::Relaxed);
            }
        }

        fn enter(&self, _: &Id) {}

        fn exit(&self, _: &Id) {}
    }

    #[tokio::test(start_paused = true)]
    async fn an_outage_is_reported_once_and_so_is_its_end() {
        let lines = Lines::default();
        let _captured = tracing::subscriber::set_default(lines.clone());
        let (reports, down) = (LogReports::default(), LogError::unavailable("down"));
        reports.answered();
        assert_eq!(lines.count(), 0);
        for _ in 0..100 {
            reports.failed(&down);
            advance(PAUSE).await;
        }
        assert_eq!(lines.count(), 1, "its begin");
        reports.answered();
        reports.answered();
        assert_eq!(lines.count(), 2, "its end");
    }

    #[tokio::test(start_paused = true)]
    async fn a_log_that_fails_and_answers_in_turn_is_reported_at_times() {
        let lines = Lines::default();
        let _captured = tracing::subscriber::set_default(lines.clone());
        let reports = LogReports::default();
        for _ in 0..100 {
            reports.failed(&LogError::unavailable("down"));
            reports.failed(&LogError::UnsupportedVersion { version: 9 });
            reports.answered();
        }
        assert_eq!(lines.count(), 3, "one begin with its end, one record");
        advance(PAUSE).await;
        reports.failed(&LogError::unavailable("down"));
        assert_eq!(lines.count(), 4);
    }

    #[tokio::test(start_paused = true)]
    async fn answers_do_not_end_the_outage_of_a_log_that_takes_no_events() {
        let lines = Lines::default();
        let _captured = tracing::subscriber::set_default(lines.clone());
        let reports = LogReports::default();
        for error in [LogError::Full, LogError::unavailable("read-only")] {
            let before = lines.count();
            for _ in 0..100 {
                reports.answered();
                reports.refused(&error);
                advance(PAUSE).await;
            }
            assert_eq!(lines.count() - before, 1, "its begin");
            reports.took_event();
            reports.took_event();
            assert_eq!(lines.count() - before, 2, "its end");
        }
    }
}
