//! The reader: owns the source and the pipeline, and routes by choice index.
//!
//! It reads the source from its start until the stream ends, and never waits for a consumer. It begins as a task. A stream that
//! is not over after [`TURNS_WITHOUT_ACTOR`] turns starts the reader actor, which owns the task from then on, and supervises the
//! choice actors. Neither receives messages: what handles ask for arrives in the command queue.

mod actor;
mod choice_actor;
mod choice_route;
mod clock;
mod commands;
mod deliver;
mod end;
pub(crate) mod job_pacer;
mod large_events;
pub(crate) mod numbering;
mod outbox;
mod owners;
mod poll;
mod read_buffer;
mod repoll;

use std::{
    future::{Future, poll_fn},
    panic::AssertUnwindSafe,
    sync::Arc,
    task::Waker,
};

use futures::FutureExt;
use ractor::{ActorCell, SpawnErr};
use tokio::{
    task::{JoinHandle, unconstrained},
    time::Instant,
};
use tracing::Instrument;
use unbraid_core::{Config, FinishPolicy, StreamError, internal::Pipeline};

pub(crate) use actor::ReaderActor;
use clock::Tick;
pub(crate) use clock::{Clock, Timeouts, Timer, has_time_driver};
use commands::Selection;
use end::{Rest, SourceStatus};
use numbering::Numbering;
use outbox::Outbox;
use owners::Owners;
use poll::ITEM_COST;
use read_buffer::ReadBuffer;
use repoll::RepollHeuristic;

use crate::{
    control::{Command, CommandReceiver, ReaderControl},
    source::{PollSource, Source, SourceError},
    state::completion::CompletionWriter,
};

/// The number of bytes that are decoded before anything is delivered. The updates gathered until then are delivered as one batch per choice.
const READ_BYTES: usize = 64 * 1024;

/// The number of empty reads in a row after which the reader pauses: a source that is always ready with nothing would keep
/// a core busy.
const EMPTY_READS: usize = READ_BYTES / ITEM_COST;

/// The number of turns after which the reader's actor is started, if the stream has not ended by then. Most short streams are over
/// after two: one that reads them, and one that finds their end.
const TURNS_WITHOUT_ACTOR: u8 = 2;

/// Starts an actor without waiting. The `pre_start` of our actors does nothing, so ractor's future is ready at its first poll, if
/// tokio lets it run regardless of how much its task has done. That spares the reader a task of its own for the start, and
/// each read with new choices a boxed future.
fn start_now<T>(start: impl Future<Output = Result<T, SpawnErr>>) -> Option<T> {
    let started = unconstrained(start).now_or_never().and_then(Result::ok);
    if started.is_none() {
        tracing::error!("an actor did not start");
    }
    started
}

/// Everything the reader works with. It is boxed, because its task would move it several times.
// What each event needs lies together, in this order. With many streams at once, each event finds the memory of its own
// stream cold, and then the number of cache lines counts more than the number of instructions.
#[repr(C)]
pub(crate) struct Reader {
    source: Box<dyn PollSource>,
    /// The waker that waits for commands.
    registered: Option<Waker>,
    control: CommandReceiver,
    /// Empty reads since the last byte.
    empty_reads: usize,
    /// The router's count of updates when the completion was last published.
    published_updates: u64,
    selection: Option<Selection>,
    /// The actor that owns this reader's task, once it is started.
    actor: Option<ActorCell>,
    turns_without_actor: u8,
    source_status: SourceStatus,
    repoll: RepollHeuristic,
    /// Whether every choice has ended, as the control was last informed.
    all_choices_ended: bool,
    rest: Rest,
    buffer: ReadBuffer,
    clock: Clock,
    pipeline: Pipeline<Outbox>,
    config: Arc<Config>,
    completion: Arc<CompletionWriter>,
    /// The owners of the logs whose choices have no actor. However the reader ends, dropping them seals these logs.
    owners: Owners,
}

/// Why the reader woke up.
#[derive(Debug)]
enum Wakeup {
    /// Something was read.
    Read {
        /// Whether more may be available at once.
        more: bool,
    },
    /// A large event may end in the read buffer.
    LargeEvent,
    End,
    Error(SourceError),
    Commands(Vec<Command>),
    Tick(Tick),
    /// The time in which usage may follow `[DONE]` is over.
    AfterDone,
}

impl Reader {
    pub(crate) fn new(
        source: Source,
        mut config: Config,
        timeouts: Timeouts,
        completion: CompletionWriter,
        control: &Arc<ReaderControl>,
        numbering: Numbering,
        started: Instant,
    ) -> Self {
        // A source of several must not use the indices of another one, so the router refuses further choices (E11).
        if let Some(capacity) = numbering.capacity() {
            config.limits.choices = config.limits.choices.min(capacity as usize);
        }
        let config = Arc::new(config);
        let mut source = source.stream;
        source.configure(&config);
        let outbox = Outbox::new(Arc::clone(&config), numbering, started);
        Self {
            source,
            registered: None,
            control: CommandReceiver::new(control),
            empty_reads: 0,
            published_updates: 0,
            selection: None,
            actor: None,
            turns_without_actor: 0,
            source_status: SourceStatus::Open,
            repoll: RepollHeuristic::default(),
            all_choices_ended: false,
            rest: Rest::Drop,
            buffer: ReadBuffer::default(),
            // Timeouts bound this source; a choice's timing counts from the start of the whole completion.
            clock: Clock::new(timeouts, Instant::now()),
            pipeline: Pipeline::new(Arc::clone(&config), outbox),
            config,
            completion: Arc::new(completion),
            owners: Owners::default(),
        }
    }

    /// Starts reading in the runtime of this thread. There must be one, because tokio would panic without.
    pub(crate) fn spawn(self: Box<Self>) -> JoinHandle<()> {
        tokio::spawn(self.work())
    }

    /// Starts the actor, to which the task of this reader then belongs, unless the stream is still young.
    fn start_actor(&mut self) {
        if self.turns_without_actor < TURNS_WITHOUT_ACTOR {
            self.turns_without_actor += 1;
            return;
        }
        // The thread that starts the reader may not have recorded its task yet. Then the next turn tries again.
        let Some(task) = self.control.take_task() else {
            return;
        };
        // If the actor does not start, it drops the task, and the choices end as lost.
        if let Some(actor) = ReaderActor::start(task) {
            self.control.set_supervised(actor.clone());
            self.actor = Some(actor);
        }
    }

    fn outbox(&self) -> &Outbox {
        &self.pipeline.sink
    }

    fn outbox_mut(&mut self) -> &mut Outbox {
        &mut self.pipeline.sink
    }

    /// The whole work of the reader. However it ends, dropping the reader seals the logs that no choice actor owns.
    async fn work(mut self: Box<Self>) {
        let read = async {
            let run = AssertUnwindSafe(self.run()).catch_unwind();
            if run.await.is_err() {
                self.end_as_lost();
            }
            self.close().await;
        };
        read.instrument(tracing::debug_span!("completion")).await;
        // A source may panic while its rest is read, too. The stream has closed by then, so the panic concerns no handle.
        let _drained = AssertUnwindSafe(self.drain()).catch_unwind().await;
    }

    /// Reads until the stream has closed.
    async fn run(&mut self) {
        while self.pipeline.router().closed().is_none() {
            if self.actor.is_none() {
                self.start_actor();
            }
            let wakeup = poll_fn(|cx| self.poll(cx)).await;
            let more = matches!(wakeup, Wakeup::Read { more: true } | Wakeup::LargeEvent);
            self.handle(wakeup).await;
            self.check_after_done();
            // Before the delivery, which then contains the ends of the choices that were cancelled.
            self.apply_selection();
            self.deliver();
            // A source that is always ready must not starve the other tasks, nor hide from them what has arrived.
            if more {
                tokio::task::yield_now().await;
            } else {
                tokio::task::consume_budget().await;
            }
            if self.empty_reads >= EMPTY_READS {
                self.empty_reads = 0;
                self.clock.pause().await;
            }
        }
        self.fail_unopened_choices();
        self.deliver();
    }

    async fn handle(&mut self, wakeup: Wakeup) {
        match wakeup {
            Wakeup::Read { .. } => self.check_time().await,
            Wakeup::LargeEvent => {
                Box::pin(self.feed_large_event()).await;
                self.check_time().await;
            }
            Wakeup::End => self.end_stream(Pipeline::finish).await,
            // Boxed, because the reader waits for its source most of the time, and this is rare.
            Wakeup::Error(error) => Box::pin(self.fail(error)).await,
            Wakeup::Commands(commands) => commands
                .into_iter()
                .for_each(|command| self.handle_command(command)),
            Wakeup::Tick(tick) => Box::pin(self.handle_tick(tick)).await,
            Wakeup::AfterDone => self.pipeline.end_after_done(),
        }
    }

    /// Ends every open choice after a panic of the reader.
    fn end_as_lost(&mut self) {
        tracing::error!("the reader of a completion panicked");
        self.source_status = SourceStatus::Ended;
        self.pipeline.abort(StreamError::Lost);
        self.deliver(); // before the error: updates that had been decoded
        self.fail_unopened_choices();
        self.deliver();
    }

    fn idle_ends_a_choice(&self) -> bool {
        self.pipeline.router().has_finished_choices()
            && self.config.finish_policy != FinishPolicy::AtStreamEnd
    }

    /// Checks the deadlines after a read: the timer is polled only while the source is pending, which it may never be.
    async fn check_time(&mut self) {
        let idle_ends = self.idle_ends_a_choice();
        if let Some(tick) = self.clock.expired(idle_ends) {
            Box::pin(self.handle_tick(tick)).await;
        }
    }

    async fn handle_tick(&mut self, tick: Tick) {
        match tick {
            Tick::Idle => self.pipeline.handle_idle(),
            Tick::TimedOut(timed_out) => {
                if self.buffer.has_large_event() {
                    Box::pin(self.feed_large_event()).await; // it arrived in time
                }
                let error = StreamError::TimedOut(timed_out);
                self.end_stream(move |pipeline| pipeline.abort(error)).await;
            }
        }
    }
}
