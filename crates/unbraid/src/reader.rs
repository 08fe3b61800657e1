//! The reader actor: owns the source and the pipeline, routes by choice index, supervises its choices.
//!
//! Its mailbox takes one message; then one long handler reads the source to its end. It never waits for a consumer.

pub(crate) mod choice_actor;
mod clock;
mod commands;
mod end;
pub(crate) mod gather;
mod held;
mod large;
pub(crate) mod numbering;
mod outbox;
mod repoll;

use std::{
    future::poll_fn,
    panic::AssertUnwindSafe,
    sync::Arc,
    task::{Context, Poll},
};

use futures::FutureExt;
use ractor::{ActorCell, ActorProcessingErr, ActorRef, ActorRuntime, SupervisionEvent};
use tokio::time::Instant;
use tracing::Instrument;
use unbraid_core::{
    ChoiceEnd, ChoiceIndex, Config, FinishPolicy, StreamError, TransportError, Warning,
    pipeline::Pipeline,
};

use clock::Tick;
pub(crate) use clock::{Clock, Timeouts, Timer, has_time_driver};
use held::Held;
use outbox::Outbox;
use repoll::Again;

use crate::{
    control::{Control, Receiver, Request},
    reader::choice_actor::leave,
    reader::numbering::Numbering,
    source::{Broken, Feed, Piece, Source},
    state::choice_log::Log,
    state::completion::{BoardWriter, News},
    sync::wait_list::SharedWaker,
};

/// Bytes that are decoded before anything is handed on: what has gathered goes as one batch a choice.
const READ_BYTES: usize = 64 * 1024;

/// What a read costs at least in that count: a source that is ever ready with nothing must not hold the thread.
const PIECE_COST: usize = 64;

/// Empty reads in a row after which the reader pauses: a source that is always ready with nothing would keep a core busy.
const EMPTY_READS: usize = READ_BYTES / PIECE_COST;

#[derive(Debug)]
struct ReaderActor;

/// Everything the reader works with. Moved out of the actor's `State` into the handler's frame, so that a kill drops it.
pub(crate) struct Reader {
    source: Box<dyn Feed>,
    pipeline: Pipeline<Outbox>,
    /// What of the last read is still to be decoded.
    held: Held,
    clock: Clock,
    options: Config,
    control: Receiver,
    board: Arc<BoardWriter>,
    /// Whether the source may be polled again.
    readable: bool,
    /// How the source ended, until what was gathered before is decoded.
    source_end: Option<Step>,
    /// Empty reads since the last byte.
    empty_reads: usize,
    drain: bool,
    again: Again,
    /// The waker that waits for requests.
    asking: Option<SharedWaker>,
    /// What the guard was told: whether every choice has ended.
    ended: bool,
    /// The router's count when the board was last looked at.
    updates: u64,
    /// The choices that go on, once it is decided.
    winners: Option<Arc<[ChoiceIndex]>>,
    /// Whether any other was open then.
    has_losers: bool,
}

/// Why the reader woke.
#[derive(Debug)]
enum Step {
    /// Something was read; `more` may be there at once.
    Read {
        more: bool,
    },
    /// A large event may end in what is held.
    Large,
    End,
    Broken(Broken),
    Asked(Vec<Request>),
    Tick(Tick),
    /// Usage that may follow `[DONE]` was waited for long enough.
    AfterDone,
}

impl Reader {
    pub(crate) fn new(
        source: Source,
        mut options: Config,
        timeouts: Timeouts,
        board: BoardWriter,
        control: &Arc<Control>,
        numbering: Numbering,
        began: Instant,
    ) -> Self {
        if let Some(room) = numbering.room() {
            options.limits.choices = options.limits.choices.min(room as usize);
        }
        let board = Arc::new(board);
        let outbox = Outbox::new(options.clone(), numbering, began);
        Self {
            source: source.0,
            pipeline: Pipeline::new(options.clone(), outbox),
            held: Held::default(),
            // Timeouts bound this source; a choice's timing counts from the beginning of the whole completion.
            clock: Clock::new(timeouts, Instant::now()),
            options,
            control: Receiver::new(control),
            board,
            readable: true,
            source_end: None,
            empty_reads: 0,
            drain: false,
            again: Again::default(),
            asking: None,
            ended: false,
            updates: 0,
            winners: None,
            has_losers: false,
        }
    }

    /// Starts the actor, in the runtime of this thread; without one ractor would panic.
    pub(crate) fn spawn(self) -> Option<ActorCell> {
        let (actor, _) = ActorRuntime::spawn_instant(None, ReaderActor, self).ok()?;
        Some(actor.get_cell())
    }

    /// Reads until the stream has closed.
    async fn run(&mut self, me: &ActorCell) {
        while self.pipeline.router().closed().is_none() {
            let mut yields = false;
            match poll_fn(|cx| self.poll(cx)).await {
                Step::Read { more } => {
                    yields = more;
                    self.check_time().await;
                }
                Step::Large => {
                    yields = true;
                    Box::pin(self.feed_large()).await;
                    self.check_time().await;
                }
                Step::End => self.end(Pipeline::finish).await,
                Step::Broken(broken) => self.fail(broken).await,
                Step::Asked(requests) => {
                    requests.into_iter().for_each(|request| self.asked(request))
                }
                Step::Tick(tick) => self.ticked(tick).await,
                Step::AfterDone => self.pipeline.end_after_done(),
            }
            self.check_after_done();
            self.keep_winners();
            self.deliver(me).await;
            // A source that is ever ready must not starve the other tasks, nor hide what has come from them.
            if yields {
                tokio::task::yield_now().await;
            } else {
                tokio::task::consume_budget().await;
            }
            if self.empty_reads >= EMPTY_READS {
                self.empty_reads = 0;
                self.clock.pause().await;
            }
        }
        self.stand_in(me).await;
    }

    /// Of several sources one may fail while the completion goes on: then its choices tell it, and be it their first news.
    async fn stand_in(&mut self, me: &ActorCell) {
        let Some(Err(error)) = self.pipeline.router().closed() else {
            return;
        };
        if self.pipeline.sink.choices() == 0 {
            let end = match (ChoiceEnd::from(error), error) {
                (ChoiceEnd::Interrupted, error) => {
                    let bytes = self.pipeline.intake().bytes();
                    ChoiceEnd::Transport(Arc::new(TransportError::new(bytes, error.clone())))
                }
                (end, _) => end,
            };
            self.pipeline.sink.stand_in(&end);
            self.deliver(me).await;
        }
    }

    /// A panic in the reader ends every choice that is open.
    async fn lost(&mut self, me: &ActorCell) {
        tracing::error!("the reader of a completion panicked");
        self.readable = false;
        self.pipeline.abort(StreamError::Lost);
        self.deliver(me).await;
        self.stand_in(me).await;
    }

    /// Takes whatever is ready, up to a bound; waits only if nothing is.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Step> {
        if let Poll::Ready(requests) = self.control.poll(cx, &mut self.asking) {
            return Poll::Ready(Step::Asked(requests));
        }
        if let Some(step) = self.held_step() {
            return Poll::Ready(step);
        }
        let Self {
            source,
            pipeline,
            held,
            clock,
            empty_reads,
            ..
        } = self;
        let mut taken = 0;
        while taken < READ_BYTES && held.takes_more() && pipeline.router().closed().is_none() {
            let polled = source.poll(cx, &mut |piece| {
                taken += PIECE_COST;
                match piece {
                    Piece::Bytes([]) => *empty_reads += 1,
                    Piece::Bytes(bytes) => {
                        *empty_reads = 0;
                        taken += bytes.len();
                        clock.touch();
                        held.read(bytes, pipeline);
                    }
                    Piece::Update(update) => {
                        *empty_reads = 0;
                        clock.touch();
                        pipeline.feed_update(update);
                    }
                }
            });
            match polled {
                Poll::Ready(Some(Ok(()))) => {}
                Poll::Ready(end) => {
                    self.readable = false;
                    let end = end.and_then(Result::err).map_or(Step::End, Step::Broken);
                    if held.is_empty() {
                        return Poll::Ready(end);
                    }
                    self.source_end = Some(end);
                    break;
                }
                Poll::Pending if held.is_large() => return self.poll_gathered(cx, taken > 0),
                Poll::Pending if taken > 0 => {
                    self.again.read();
                    if self.again.pays() || !self.deliver_now() {
                        return Poll::Ready(Step::Read { more: false });
                    }
                    return self.poll_clock(cx);
                }
                Poll::Pending => {
                    self.again.had_nothing();
                    return self.poll_clock(cx);
                }
            }
        }
        Poll::Ready(Step::Read { more: true })
    }

    fn poll_clock(&mut self, cx: &mut Context<'_>) -> Poll<Step> {
        if self.pipeline.router().is_after_done() {
            return self.poll_after_done(cx);
        }
        let quiet = self.silence_ends_a_choice();
        self.clock.poll(cx, quiet).map(Step::Tick)
    }

    fn silence_ends_a_choice(&self) -> bool {
        self.options.finish_policy != FinishPolicy::AtStreamEnd
            && self.pipeline.router().has_finished_choices()
    }

    /// The timer is polled only while the source is pending, which it may never be.
    async fn check_time(&mut self) {
        let quiet = self.silence_ends_a_choice();
        if let Some(tick) = self.clock.passed(quiet) {
            self.ticked(tick).await;
        }
    }

    async fn ticked(&mut self, tick: Tick) {
        match tick {
            Tick::Quiet => self.pipeline.handle_idle(),
            Tick::TimedOut(over) => {
                if self.held.is_large() {
                    Box::pin(self.feed_large()).await; // it has come in time
                }
                self.end(move |pipeline| pipeline.abort(StreamError::TimedOut(over)))
                    .await;
            }
        }
    }

    /// Gives each choice its batch at once, so that the source need not be asked again before waiting for it; false if
    /// there is more to do.
    fn deliver_now(&mut self) -> bool {
        let plain = self.winners.is_none() && self.pipeline.router().closed().is_none();
        let delivered = plain && self.pipeline.sink.deliver();
        if delivered {
            self.tell(Vec::new());
        }
        delivered
    }

    /// Gives each choice its batch, starts those that are new, and publishes the stream's own news.
    async fn deliver(&mut self, me: &ActorCell) {
        let new = if self.pipeline.sink.deliver() {
            Vec::new()
        } else {
            let over = self.pipeline.router().closed().is_some();
            self.pipeline.sink.start(me, &self.board, over).await
        };
        self.tell(new);
    }

    fn tell(&mut self, new: Vec<Log>) {
        let router = self.pipeline.router();
        if self.ended != router.all_ended() {
            self.ended = router.all_ended();
            self.control.set_ended(self.ended);
        }
        // Only an update tells of the stream as a whole, and most events are mere pieces of text.
        let same = std::mem::replace(&mut self.updates, router.updates()) == router.updates();
        let quiet = new.is_empty() && self.pipeline.sink.events.is_empty();
        if quiet && (same || self.board.knows(router.metadata())) {
            return;
        }
        let events = std::mem::take(&mut self.pipeline.sink.events);
        self.board.tell(News {
            choices: new,
            events,
            metadata: self.pipeline.router().metadata(),
            warnings: self.warnings(),
        });
    }

    fn warnings(&self) -> Vec<Warning> {
        let mut warnings = self.pipeline.router().warnings().to_vec();
        for warning in &mut warnings {
            warning.choice = warning.choice.map(|own| self.pipeline.sink.number(own));
        }
        warnings
    }
}

#[ractor::actor(message = (), state = Option<Reader>, arguments = Reader)]
impl ReaderActor {
    async fn pre_start(
        &self,
        me: ActorRef<()>,
        reader: Reader,
    ) -> Result<Option<Reader>, ActorProcessingErr> {
        me.cast(())?;
        Ok(Some(reader))
    }

    async fn handle(
        &self,
        me: ActorRef<()>,
        _: (),
        reader: &mut Option<Reader>,
    ) -> Result<(), ActorProcessingErr> {
        let Some(mut reader) = reader.take() else {
            return Ok(());
        };
        let cell = me.get_cell();
        let span = tracing::debug_span!("completion");
        let run = AssertUnwindSafe(reader.run(&cell)).catch_unwind();
        if run.instrument(span.clone()).await.is_err() {
            reader.lost(&cell).await;
        }
        reader.close().instrument(span).await;
        // A source may panic in its rest, too; nobody is left who could be told.
        let _drained = AssertUnwindSafe(reader.drain()).catch_unwind().await;
        drop(reader);
        leave(&me);
        Ok(())
    }

    /// The default ends the reader with any of its choices.
    async fn handle_supervisor_evt(
        &self,
        _: ActorRef<()>,
        _: SupervisionEvent,
        _: &mut Option<Reader>,
    ) -> Result<(), ActorProcessingErr> {
        Ok(())
    }
}
