//! How the end of a stream reaches its handles, and what happens to the rest of its bytes.

use std::{
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll},
};

use unbraid_core::{
    ChoiceEnd, Limit, LimitExceeded, StreamError, TransportError, Usage,
    limits::MAX_BYTES_AFTER_DONE,
};

use super::{ITEM_COST, Reader, Wakeup};
use crate::{
    source::{SourceError, SourceItem},
    state::merged::Closed,
};

/// The state of the reader's source.
#[derive(Debug)]
pub(super) enum SourceStatus {
    Open,
    /// It has ended, and what was read before is still to be decoded.
    Ending(Wakeup),
    Ended,
}

impl SourceStatus {
    pub(super) fn has_ended(&self) -> bool {
        !matches!(self, Self::Open)
    }

    /// The end that is still to be handled, once everything before it is decoded.
    pub(super) fn take_end(&mut self) -> Option<Wakeup> {
        if let Self::Open = self {
            return None;
        }
        match std::mem::replace(self, Self::Ended) {
            Self::Ending(end) => Some(end),
            Self::Open | Self::Ended => None,
        }
    }
}

/// What happens to the rest of a source once the stream has closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rest {
    /// The source is dropped, which closes its connection.
    Drop,
    /// A bounded rest is read, so that the connection can be reused.
    Drain,
}

impl Reader {
    pub(super) async fn fail(&mut self, error: SourceError) {
        let error = error.into_stream_error(self.pipeline.update_reader().bytes());
        self.end_stream(move |pipeline| pipeline.abort(error)).await;
    }

    /// If one of several sources fails before its choices appeared, opens those choices so that they report the error. They
    /// are still to be delivered.
    pub(super) fn fail_unopened_choices(&mut self) {
        let Some(Err(error)) = self.pipeline.router().closed() else {
            return;
        };
        if self.outbox().choices() > 0 {
            return;
        }
        let end = match ChoiceEnd::from(error) {
            // No choice had begun that could be interrupted: the choices report what failed.
            ChoiceEnd::Interrupted => {
                let bytes = self.pipeline.update_reader().bytes();
                ChoiceEnd::Transport(Arc::new(TransportError::new(bytes, error.clone())))
            }
            end => end,
        };
        self.outbox_mut().fail_unopened_choices(&end);
    }

    /// The usage that one of several sources reported in its last event, with each choice's index within the completion.
    fn usage(&mut self) -> Option<Box<Usage>> {
        let mut usage = self.outbox_mut().take_usage()?;
        for (choice, _) in &mut usage.per_choice {
            *choice = self.outbox().assigned_index(*choice);
        }
        Some(usage)
    }

    /// Waits until the choices have ended, then publishes that the stream is closed.
    pub(super) async fn close(&mut self) {
        // The reader's exit kills its linked children, so they must end first.
        // The router has ended every choice by now, so no actor waits for more, and this cannot take long.
        self.pipeline.sink.join(&mut self.owners).await;
        let router = self.pipeline.router();
        let result = router.closed().cloned().unwrap_or(Err(StreamError::Lost));
        // After an error the rest is dropped together with its connection, unless the command `Drain` asked for it.
        if result.is_ok() {
            self.rest = Rest::Drain;
        }
        let closed = Closed {
            reported_by_choices: self.is_reported_by_choices(&result),
            events: self.pipeline.update_reader().events(),
            // Dropped warnings are no reason to publish, so the last count is taken here.
            warnings_dropped: self.pipeline.router().warnings_dropped(),
            result,
        };
        self.trace_closed(&closed);
        let usage = self.usage();
        self.completion.close(closed, usage);
    }

    /// Whether `choices()` reports the error: it ended a choice, refused one, or no choice appeared at all.
    fn is_reported_by_choices(&self, result: &Result<(), StreamError>) -> bool {
        let Err(error) = result else {
            return false;
        };
        let refused = matches!(
            error,
            StreamError::Limit(LimitExceeded {
                limit: Limit::Choices,
                ..
            })
        );
        refused || self.outbox().choices() == 0 || self.outbox().has_failed_choice()
    }

    fn trace_closed(&self, closed: &Closed) {
        let error = closed.result.as_ref().err();
        tracing::debug!(
            bytes = self.pipeline.update_reader().bytes(),
            events = closed.events,
            choices = self.outbox().choices(),
            outcome = error.map_or("complete", StreamError::as_str),
            "stream closed"
        );
    }

    /// Waits for usage after `[DONE]` (U13), within the time of a drain, of which this is the first part.
    pub(super) fn poll_after_done(&mut self, cx: &mut Context<'_>) -> Poll<Wakeup> {
        self.clock.start_drain();
        self.clock.poll_drain(cx).map(|()| Wakeup::AfterDone)
    }

    /// Bounds the time for which a source that is always ready may keep a stream open after `[DONE]`.
    pub(super) fn check_after_done(&mut self) {
        if self.pipeline.router().is_after_done() {
            self.clock.start_drain();
            if self.clock.is_drained() {
                self.pipeline.end_after_done();
            }
        }
    }

    /// Reads a bounded rest of a stream that is over, so that its connection can be reused (S26).
    pub(super) async fn drain(&mut self) {
        if self.rest == Rest::Drop || self.source_status.has_ended() {
            return;
        }
        let mut rest = MAX_BYTES_AFTER_DONE.saturating_sub(self.pipeline.bytes_after_done());
        let Self { source, clock, .. } = self;
        clock.start_drain();
        let mut has_yielded = false;
        poll_fn(|cx| {
            loop {
                let mut cost = ITEM_COST;
                let polled = source.poll(cx, &mut |item| {
                    if let SourceItem::Bytes(bytes) = item {
                        cost += bytes.len();
                    }
                });
                // An item without bytes costs something, too, or a source that is always ready with nothing would never be
                // done.
                rest = rest.saturating_sub(cost);
                match polled {
                    Poll::Ready(Some(Ok(()))) if rest > 0 => {}
                    Poll::Ready(_) => return Poll::Ready(()),
                    // The end of a body usually takes one more turn of its connection's task. Only a source that takes longer
                    // is worth a timer.
                    Poll::Pending if !std::mem::replace(&mut has_yielded, true) => {
                        cx.waker().wake_by_ref();
                        return Poll::Pending;
                    }
                    Poll::Pending => return clock.poll_drain(cx),
                }
            }
        })
        .await;
    }
}
