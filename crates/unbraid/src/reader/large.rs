//! The end of a large event: decoded on another thread, so that the tasks of this one have their turn.

use std::{
    mem,
    panic::resume_unwind,
    task::{Context, Poll},
};

use tokio::time::Instant;
use unbraid_core::pipeline::Pipeline;

use super::{Reader, Step, held::Held, outbox::Outbox};
use crate::{
    apart::{self, Done},
    reader::numbering::Numbering,
};

impl Reader {
    /// Decodes the next portion of what is held, in which a large event may end.
    pub(super) async fn feed_large(&mut self) {
        self.apart(|pipeline, held| {
            #[cfg(test)]
            crate::tests::large::in_job(held.first());
            held.feed(pipeline);
        })
        .await;
        self.held.job_ended();
        self.clock.touch();
    }

    /// What is to be done with what is held before the source is asked for more.
    pub(super) fn held_step(&mut self) -> Option<Step> {
        if self.held.check_large(&self.pipeline) {
            // Empty reads take no time where it is paused: they must not delay what has come whole.
            let no_more = self.source_end.is_some() || self.empty_reads > 0;
            return (no_more || self.held.is_due()).then_some(Step::Large);
        }
        if self.held.feed(&mut self.pipeline) {
            self.clock.touch();
            return Some(Step::Read { more: true });
        }
        self.source_end.take()
    }

    /// The source has nothing now. What was gathered is decoded at once, or soon if a job has only just ended: a source that
    /// gives a few bytes at a time must not cost a job for each of them.
    pub(super) fn poll_gathered(&mut self, cx: &mut Context<'_>, has_read: bool) -> Poll<Step> {
        if has_read && !self.deliver_now() {
            return Poll::Ready(Step::Read { more: false });
        }
        match self.held.next_job() {
            Some(until) => self.clock.poll_moment(cx, until).map(|()| Step::Large),
            None => Poll::Ready(Step::Large),
        }
    }

    /// Does what ends the stream, and decodes what it left unfinished.
    pub(super) async fn end(&mut self, work: impl FnOnce(&mut Pipeline<Outbox>) + Send + 'static) {
        if self.held.is_apart() && apart::is_large(self.pipeline.intake()) {
            // Boxed, so that a stream without large events has a small task.
            Box::pin(self.apart(|pipeline, _| work(pipeline))).await;
        } else {
            work(&mut self.pipeline);
        }
    }

    /// Meanwhile this reader has an empty pipeline, which nobody reads. If it is killed, the choices end and the source is
    /// dropped at once; the job is not waited for, and drops the pipeline.
    async fn apart(
        &mut self,
        work: impl FnOnce(&mut Pipeline<Outbox>, &mut Held) + Send + 'static,
    ) {
        let options = self.options.clone();
        let outbox = Outbox::new(options.clone(), Numbering::default(), Instant::now());
        let pipeline = mem::replace(&mut self.pipeline, Pipeline::new(options, outbox));
        let held = mem::take(&mut self.held);
        let job = apart::apart((pipeline, held), |(pipeline, held)| {
            work(pipeline, held);
            pipeline.sink.apply();
        });
        let Done {
            value,
            result,
            here,
        } = job.await;
        (self.pipeline, self.held) = value;
        if here {
            self.held.stay();
        }
        if let Err(panic) = result {
            resume_unwind(panic); // the reader is lost, as it would be if it had decoded here
        }
    }
}
