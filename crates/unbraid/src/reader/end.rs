//! How a stream's end reaches its handles, and what becomes of the rest of its bytes.

use std::{
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll},
};

use unbraid_core::{
    Limit, LimitExceeded, StreamError, TransportError, Usage, limits::MAX_BYTES_AFTER_DONE,
};

use super::{PIECE_COST, Reader, Step};
use crate::{
    source::{Broken, Piece},
    state::completion::Closed,
};

impl Reader {
    /// The source has failed.
    pub(super) async fn fail(&mut self, broken: Broken) {
        let error = match broken {
            Broken::Transport(error) => {
                let bytes = self.pipeline.intake().bytes();
                StreamError::Transport(Arc::new(TransportError::new(bytes, error)))
            }
            Broken::Stream(error) => error,
        };
        self.end(move |pipeline| pipeline.abort(error)).await;
    }

    /// The reported usage, each choice by its index within the completion.
    fn usage(&self) -> Usage {
        let mut usage = self.pipeline.router().usage();
        for (choice, _) in &mut usage.per_choice {
            *choice = self.pipeline.sink.number(*choice);
        }
        usage
    }

    /// Lets the choices come to their ends, then tells that the stream is over.
    pub(super) async fn close(&mut self) {
        // Our exit kills linked children: they come first.
        self.pipeline.sink.join().await;
        let router = self.pipeline.router();
        let result = router.closed().cloned().unwrap_or(Err(StreamError::Lost));
        let refused = matches!(
            result,
            Err(StreamError::Limit(LimitExceeded {
                limit: Limit::Choices,
                ..
            }))
        );
        let none_came = self.pipeline.sink.choices() == 0;
        let told_by_choices = result.is_err() && (self.pipeline.sink.told || refused || none_came);
        let (bytes, events) = (
            self.pipeline.intake().bytes(),
            self.pipeline.intake().events(),
        );
        let outcome = result
            .as_ref()
            .err()
            .map_or("complete", StreamError::as_str);
        tracing::debug!(
            bytes,
            events,
            choices = self.pipeline.sink.choices(),
            outcome,
            "stream closed"
        );
        self.drain |= result.is_ok();
        let closed = Closed {
            result,
            told_by_choices,
            events,
        };
        self.board.close(closed, self.usage());
    }

    /// Waits for usage after `[DONE]` (U13): within the time of a drain, of which this is the first part.
    pub(super) fn poll_after_done(&mut self, cx: &mut Context<'_>) -> Poll<Step> {
        self.clock.start_drain();
        self.clock.poll_drain(cx).map(|()| Step::AfterDone)
    }

    /// Bounds the time in which a source that always has something ready may hold a stream open after `[DONE]`.
    pub(super) fn check_after_done(&mut self) {
        if self.pipeline.router().is_after_done() {
            self.clock.start_drain();
            if self.clock.is_drained() {
                self.pipeline.end_after_done();
            }
        }
    }

    /// Reads a bounded rest of a stream that is over, so that its connection can be used again (S26).
    pub(super) async fn drain(&mut self) {
        if !self.drain || !self.readable {
            return;
        }
        let mut rest = MAX_BYTES_AFTER_DONE.saturating_sub(self.pipeline.bytes_after_done());
        let Self { source, clock, .. } = self;
        clock.start_drain();
        poll_fn(|cx| {
            loop {
                let mut taken = PIECE_COST;
                let polled = source.poll(cx, &mut |piece| {
                    if let Piece::Bytes(bytes) = piece {
                        taken += bytes.len();
                    }
                });
                rest = rest.saturating_sub(taken);
                match polled {
                    Poll::Ready(Some(Ok(()))) if rest > 0 => {}
                    Poll::Ready(_) => return Poll::Ready(()),
                    Poll::Pending => return clock.poll_drain(cx),
                }
            }
        })
        .await;
    }
}
