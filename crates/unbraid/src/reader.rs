//! The reader: owns the source and the pipeline, and routes by choice index. It is the task of the reader actor, which supervises
//! the choices.
//!
//! It reads the source from its start until the stream ends, and receives no message. It never waits for a consumer.

mod actor;
mod choice_actor;
mod clock;
mod commands;
mod end;
pub(crate) mod job_pacer;
mod large_events;
pub(crate) mod numbering;
mod outbox;
mod owners;
mod read_buffer;
mod repoll;

use std::{
    future::{Future, poll_fn},
    panic::AssertUnwindSafe,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use futures::FutureExt;
use ractor::{ActorCell, SpawnErr};
use tokio::{
    task::{JoinHandle, unconstrained},
    time::Instant,
};
use tracing::Instrument;
use unbraid_core::{Config, FinishPolicy, StreamError, Warning, internal::Pipeline};

pub(crate) use actor::ReaderActor;
use clock::Tick;
pub(crate) use clock::{Clock, Timeouts, Timer, has_time_driver};
use commands::Selection;
use end::{Rest, SourceStatus};
use numbering::Numbering;
use outbox::Outbox;
use owners::Owners;
use read_buffer::ReadBuffer;
use repoll::RepollHeuristic;

use crate::{
    control::{Command, CommandReceiver, ReaderControl},
    source::{PollSource, Source, SourceError, SourceItem},
    state::{
        choice_log::ChoiceLog,
        completion::{CompletionWriter, Published},
    },
};

/// The number of bytes that are decoded before anything is delivered. The updates gathered until then are delivered as one batch per choice.
const READ_BYTES: usize = 64 * 1024;

/// What an item counts at least towards [`READ_BYTES`]: a source that is always ready with nothing must not hold the thread.
const ITEM_COST: usize = 64;

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
    /// The owners of the logs whose choices have no actor yet. However the reader ends, dropping them seals these logs.
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

    /// Reads whatever is ready, up to a bound, and waits only if nothing is.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Wakeup> {
        // Commands come first: a source that is always ready must not keep a cancel waiting.
        if let Poll::Ready(commands) = self.control.poll(cx, &mut self.registered) {
            return Poll::Ready(Wakeup::Commands(commands));
        }
        if let Some(wakeup) = self.poll_buffer() {
            return Poll::Ready(wakeup);
        }
        let mut cost = 0;
        while cost < READ_BYTES
            && self.buffer.accepts_read()
            && self.pipeline.router().closed().is_none()
        {
            match self.poll_source(cx, &mut cost) {
                Poll::Ready(Some(Ok(()))) => {}
                Poll::Ready(end) => {
                    let end = end.and_then(Result::err);
                    let end = end.map_or(Wakeup::End, Wakeup::Error);
                    // What was read before the end is decoded and delivered first, so that an error does not overtake the text
                    // before it.
                    if self.buffer.is_empty() {
                        self.source_status = SourceStatus::Ended;
                        return Poll::Ready(end);
                    }
                    self.source_status = SourceStatus::Ending(end);
                    break;
                }
                Poll::Pending => return self.poll_pending(cx, cost > 0),
            }
        }
        Poll::Ready(Wakeup::Read { more: true })
    }

    /// Polls the source once, and decodes the item that it has. `cost` counts what was read.
    fn poll_source(
        &mut self,
        cx: &mut Context<'_>,
        cost: &mut usize,
    ) -> Poll<Option<Result<(), SourceError>>> {
        let Self {
            source,
            pipeline,
            buffer,
            clock,
            empty_reads,
            ..
        } = self;
        source.poll(cx, &mut |item| {
            *cost += ITEM_COST;
            match item {
                SourceItem::Bytes([]) => *empty_reads += 1,
                SourceItem::Bytes(bytes) => {
                    *empty_reads = 0;
                    *cost += bytes.len();
                    clock.touch();
                    buffer.read(bytes, pipeline);
                }
                SourceItem::Update(update) => {
                    *empty_reads = 0;
                    clock.touch();
                    pipeline.feed_update(update);
                }
                SourceItem::ChoiceEnd(choice, end) => {
                    *empty_reads = 0;
                    clock.touch();
                    pipeline.end_choice(choice, end);
                }
            }
        })
    }

    /// The source is pending. What was read is delivered, and then there is only time to wait for.
    fn poll_pending(&mut self, cx: &mut Context<'_>, has_read: bool) -> Poll<Wakeup> {
        if self.buffer.has_large_event() {
            return self.poll_gathered(cx);
        }
        if has_read {
            self.repoll.saw_item();
            // The source has registered this task's waker, so that it need not be polled again before waiting.
            if self.repoll.should_repoll() || !self.deliver_now() {
                return Poll::Ready(Wakeup::Read { more: false });
            }
        } else {
            self.repoll.saw_pending();
        }
        self.poll_clock(cx)
    }

    fn poll_clock(&mut self, cx: &mut Context<'_>) -> Poll<Wakeup> {
        if self.pipeline.router().is_after_done() {
            return self.poll_after_done(cx);
        }
        let idle_ends = self.idle_ends_a_choice();
        self.clock.poll(cx, idle_ends).map(Wakeup::Tick)
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

    /// Delivers the batches from within a poll; returns false if there is more to do, which needs an `await`. A shortcut:
    /// after the poll, [`deliver`](Self::deliver) would do the same, but the source would then be polled once more.
    fn deliver_now(&mut self) -> bool {
        let only_batches = self.selection.is_none() && self.pipeline.router().closed().is_none();
        let delivered = only_batches && self.outbox_mut().deliver();
        if delivered {
            self.publish(Vec::new());
        }
        delivered
    }

    /// Delivers the batches, announces new choices, starts the actors of others, and publishes what concerns the stream itself.
    fn deliver(&mut self) {
        let new = if self.outbox_mut().deliver() {
            Vec::new()
        } else {
            let over = self.pipeline.router().closed().is_some();
            // When the stream is over, no more updates arrive for a choice, so it needs no actor.
            let supervisor = self.actor.as_ref().filter(|_| !over);
            let (completion, owners) = (&self.completion, &mut self.owners);
            self.pipeline.sink.advance(supervisor, completion, owners)
        };
        self.publish(new);
    }

    fn publish(&mut self, choices: Vec<ChoiceLog>) {
        let router = self.pipeline.router();
        // Only the control needs this: when the last handle is dropped, the reader then drains a connection that can be
        // reused, and is not killed.
        if self.all_choices_ended != router.all_ended() {
            self.all_choices_ended = router.all_ended();
            self.control.set_all_choices_ended(self.all_choices_ended);
        }
        // Only a whole update can change the metadata or warn, and most events bring a piece of text. So the usual read
        // publishes nothing, and takes no lock to find that out.
        let updates = router.updates();
        let no_update = std::mem::replace(&mut self.published_updates, updates) == updates;
        let nothing_new = choices.is_empty() && !self.outbox().has_events();
        let router = self.pipeline.router();
        if nothing_new && (no_update || self.completion.has_published(router.metadata())) {
            return;
        }
        let events = self.outbox_mut().take_events();
        let router = self.pipeline.router();
        self.completion.publish(Published {
            choices,
            events,
            metadata: router.metadata(),
            warnings: self.warnings(),
            warnings_dropped: router.warnings_dropped(),
        });
    }

    /// The warnings of the stream itself, with each choice's index within the completion.
    fn warnings(&self) -> Vec<Warning> {
        let mut warnings = self.pipeline.router().warnings().to_vec();
        for warning in &mut warnings {
            self.outbox().assign_choice(warning);
        }
        warnings
    }
}
