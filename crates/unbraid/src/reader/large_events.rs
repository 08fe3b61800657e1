//! The end of a large event is decoded on a blocking thread, so that other tasks of this thread keep running.

use std::{
    mem,
    panic::resume_unwind,
    sync::Arc,
    task::{Context, Poll},
};

use tokio::time::Instant;
use unbraid_core::internal::Pipeline;

use super::{Reader, Wakeup, numbering::Numbering, outbox::Outbox, read_buffer::ReadBuffer};
use crate::blocking::{self, Completed};

impl Reader {
    /// Decodes the next portion of the read buffer, in which a large event may end.
    pub(super) async fn feed_large_event(&mut self) {
        self.run_blocking(|pipeline, buffer| {
            #[cfg(test)]
            crate::tests::large::in_job(buffer.first_block());
            buffer.feed(pipeline);
        })
        .await;
        self.buffer.record_job();
        self.clock.touch();
    }

    /// What is to be done with the read buffer before the source is polled again.
    pub(super) fn poll_buffer(&mut self) -> Option<Wakeup> {
        if self.buffer.check_large_event(&self.pipeline) {
            // No time passes between empty reads if the runtime's clock is paused, so they must not delay a complete event.
            let no_more = self.source_status.has_ended() || self.empty_reads > 0;
            return (no_more || self.buffer.is_due()).then_some(Wakeup::LargeEvent);
        }
        if self.buffer.feed(&mut self.pipeline) {
            self.clock.touch();
            return Some(Wakeup::Read { more: true });
        }
        self.source_status.take_end()
    }

    /// The source is pending. What was gathered is decoded at once, or soon if a job has just ended: a source that brings a
    /// few bytes at a time must not cost one job each.
    pub(super) fn poll_gathered(&mut self, cx: &mut Context<'_>) -> Poll<Wakeup> {
        // Nothing is to be delivered first: more than one turn reads is part of the large event already, so this turn has
        // decoded nothing else.
        match self.buffer.next_job() {
            Some(until) => self
                .clock
                .poll_until(cx, until)
                .map(|()| Wakeup::LargeEvent),
            None => Poll::Ready(Wakeup::LargeEvent),
        }
    }

    /// Ends the stream by `work`, which also decodes what the stream left unfinished.
    pub(super) async fn end_stream(
        &mut self,
        work: impl FnOnce(&mut Pipeline<Outbox>) + Send + 'static,
    ) {
        if self.buffer.uses_blocking_threads() && blocking::is_large(self.pipeline.update_reader())
        {
            // Boxed, so that the task of a stream without large events stays small.
            Box::pin(self.run_blocking(|pipeline, _| work(pipeline))).await;
        } else {
            work(&mut self.pipeline);
        }
    }

    /// Meanwhile the reader holds an empty pipeline, which nobody reads. If the reader is killed, the choices end and the
    /// source is dropped at once; the job is not waited for, and drops the pipeline.
    async fn run_blocking(
        &mut self,
        work: impl FnOnce(&mut Pipeline<Outbox>, &mut ReadBuffer) + Send + 'static,
    ) {
        let config = Arc::clone(&self.config);
        let outbox = Outbox::new(Arc::clone(&config), Numbering::default(), Instant::now());
        // The pipeline moves, and is not shared: the decoder needs it mutably, and a lock would have to be taken on every
        // read.
        let pipeline = mem::replace(&mut self.pipeline, Pipeline::new(config, outbox));
        let buffer = mem::take(&mut self.buffer);
        let job = blocking::run_blocking((pipeline, buffer), |(pipeline, buffer)| {
            work(pipeline, buffer);
            pipeline.sink.apply();
        });
        let Completed {
            value,
            result,
            ran_inline,
        } = job.await;
        (self.pipeline, self.buffer) = value;
        if ran_inline {
            self.buffer.stop_using_blocking_threads();
        }
        if let Err(panic) = result {
            resume_unwind(panic); // the reader is lost, as it would be if it had decoded here
        }
    }
}
