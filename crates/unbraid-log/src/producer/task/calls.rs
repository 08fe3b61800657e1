//! The calls of the log, each with a bound of its time.

use std::{sync::Arc, time::Duration};

use futures::future::BoxFuture;
use tokio::time::{Instant, timeout};

use super::ProducerTask;
use crate::{Appended, End, LogError, LogStatus, LogWriter, StreamEnd, protocol::Span};

/// Bounds of the time that one call may take. The log itself gives up after about a second; one that does not must not
/// keep the lease from being renewed.
const MIN_CALL: Duration = Duration::from_millis(250);
const MAX_CALL: Duration = Duration::from_secs(2);

/// The result of a call.
pub(super) enum Outcome {
    Opened(Result<Box<dyn LogWriter>, LogError>),
    Appended(Box<dyn LogWriter>, Result<Appended, LogError>, Duration),
    Renewed(Box<dyn LogWriter>, Result<(), LogError>),
    Sealed(Box<dyn LogWriter>, Result<(), LogError>),
    Checked(Result<LogStatus, LogError>),
}

impl ProducerTask {
    /// How long a call may take.
    pub(super) fn call_timeout(&self) -> Duration {
        (self.options.lease / 3).clamp(MIN_CALL, MAX_CALL)
    }

    pub(super) fn open(&self) -> BoxFuture<'static, Outcome> {
        let (target, limit) = (Arc::clone(&self.target), self.call_timeout());
        Box::pin(async move {
            let opened = timeout(limit, target.log.reopen(&target.id, &target.meta)).await;
            Outcome::Opened(opened.unwrap_or_else(|_| Err(slow())))
        })
    }

    pub(super) fn check(&self) -> BoxFuture<'static, Outcome> {
        let (target, limit) = (Arc::clone(&self.target), self.call_timeout());
        Box::pin(async move {
            let status = timeout(limit, target.log.status(&target.id)).await;
            Outcome::Checked(status.unwrap_or_else(|_| Err(slow())))
        })
    }

    pub(super) fn append(&mut self, span: Span) -> BoxFuture<'static, Outcome> {
        let limit = self.call_timeout();
        let record = self.record(span);
        let Some((mut writer, record)) = self.writer.take().zip(record) else {
            return self.open();
        };
        Box::pin(async move {
            let started = Instant::now();
            let appended = timeout(limit, writer.append(&record)).await;
            let appended = appended.unwrap_or_else(|_| Err(slow()));
            Outcome::Appended(writer, appended, started.elapsed())
        })
    }

    pub(super) fn renew(&mut self) -> BoxFuture<'static, Outcome> {
        let limit = self.call_timeout();
        let Some(mut writer) = self.writer.take() else {
            return self.open();
        };
        Box::pin(async move {
            let renewed = timeout(limit, writer.renew()).await;
            let renewed = renewed.unwrap_or_else(|_| Err(slow()));
            Outcome::Renewed(writer, renewed)
        })
    }

    pub(super) fn seal(&mut self) -> BoxFuture<'static, Outcome> {
        let limit = self.call_timeout();
        // Without an end of its owner the stream has failed with its log.
        let end = self.own_end();
        let end = end.unwrap_or_else(|| StreamEnd::new(End::ServerError));
        let Some(mut writer) = self.writer.take() else {
            return self.open();
        };
        Box::pin(async move {
            let sealed = timeout(limit, writer.seal(&end)).await;
            let sealed = sealed.unwrap_or_else(|_| Err(slow()));
            Outcome::Sealed(writer, sealed)
        })
    }
}

fn slow() -> LogError {
    LogError::unavailable("the log did not answer in time")
}
