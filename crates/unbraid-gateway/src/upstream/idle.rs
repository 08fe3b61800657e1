//! The timeout of bodies that no generation reads. A generation has a clock of its own.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures::Stream;
use thiserror::Error;
use tokio::time::Instant;
use unbraid_core::BoxError;

use super::stop::Drained;
use crate::{api_error::ApiError, timer::Timer};

/// A body was silent for too long.
#[derive(Debug, Error)]
#[error("the upstream was silent for too long")]
struct Silent;

/// Fails a body that is silent for too long, while it is waited for.
pub(crate) fn with_idle_timeout<S>(body: S, idle: Duration) -> IdleTimeout<S> {
    IdleTimeout {
        body: Some(body),
        idle,
        waits_since: None,
        timer: Timer::default(),
    }
}

/// A body with a timeout.
pub(crate) struct IdleTimeout<S> {
    body: Option<S>,
    idle: Duration,
    waits_since: Option<Instant>,
    timer: Timer,
}

impl<S> Stream for IdleTimeout<S>
where
    S: Stream<Item = Result<Bytes, BoxError>> + Unpin,
{
    type Item = S::Item;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<S::Item>> {
        let this = &mut *self;
        let Some(body) = &mut this.body else {
            return Poll::Ready(None);
        };
        if let Poll::Ready(read) = Pin::new(body).poll_next(cx) {
            this.waits_since = None;
            return Poll::Ready(read);
        }
        let mut now = Instant::now();
        let since = *this.waits_since.get_or_insert(now);
        let Some(until) = since.checked_add(this.idle) else {
            return Poll::Pending;
        };
        while this.timer.poll_until(cx, until, now).is_ready() {
            now = Instant::now();
            if until <= now {
                this.body = None;
                return Poll::Ready(Some(Err(Silent.into())));
            }
        }
        Poll::Pending
    }
}

/// What a client gets if a body could not be read to its end.
pub(crate) fn read_error(error: &BoxError) -> ApiError {
    if error.is::<Silent>() {
        ApiError::UPSTREAM_TIMEOUT
    } else if error.is::<Drained>() {
        ApiError::DRAINING
    } else {
        ApiError::UPSTREAM_INVALID
    }
}
