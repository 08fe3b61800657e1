//! How a stream's end reaches its choices and its handles, and what becomes of the rest of its bytes.

use std::{future::poll_fn, sync::Arc, task::Poll};

use ractor::ActorCell;
use unbraid_core::{End, Limit, LimitExceeded, StreamError, TransportError, Usage};

use super::{PIECE_COST, Reader};
use crate::{board::Closed, source::Piece};

/// What is read of a stream that nobody needs any more, so that its connection can be used again.
const DRAIN_BYTES: usize = 64 * 1024;

impl Reader {
    /// Of several sources one may fail while the completion goes on: then its choices tell it, and be it their first news.
    pub(super) async fn stand_in(&mut self, me: &ActorCell) {
        let Some(Err(error)) = self.pipeline.router().closed() else {
            return;
        };
        if self.pipeline.sink.choices() == 0 {
            let end = match (End::from(error), error) {
                (End::Interrupted, error) => {
                    let bytes = self.pipeline.intake().bytes();
                    End::Transport(Arc::new(TransportError::new(bytes, error.clone())))
                }
                (end, _) => end,
            };
            self.pipeline.sink.stand_in(&end);
            self.deliver(me).await;
        }
    }

    /// The reported usage, each choice by its index within the completion.
    fn usage(&self) -> Usage {
        let mut usage = self.pipeline.router().usage();
        for (choice, _) in &mut usage.per_choice {
            *choice = self.pipeline.sink.number(*choice);
        }
        usage
    }

    /// A panic in the reader ends every choice that is open.
    pub(super) async fn lost(&mut self, me: &ActorCell) {
        tracing::error!("the reader of a completion panicked");
        self.readable = false;
        self.pipeline.fail(StreamError::Lost);
        self.deliver(me).await;
        self.stand_in(me).await;
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
        let outcome = result.as_ref().err().map_or("complete", StreamError::name);
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

    /// Reads a bounded rest of a stream that is over, so that its connection can be used again (S26).
    pub(super) async fn drain(&mut self) {
        if !self.drain || !self.readable {
            return;
        }
        let mut rest = DRAIN_BYTES;
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
