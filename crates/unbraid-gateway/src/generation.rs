//! One generation: its actor owns the upstream's bodies, the core's state of each, and the log.
//!
//! Data does not pass through mailboxes: it travels from the body into a record, and from the log to the readers.

mod actor;
mod clock;
mod commands;
mod ends;
mod keeper;
mod part;
mod rewrite;
#[cfg(test)]
mod tests;
mod tracker;

use std::{
    collections::BTreeSet,
    fmt,
    future::poll_fn,
    task::{Context, Poll},
    time::Duration,
};

use futures::future::BoxFuture;
use tokio::{
    sync::{mpsc, oneshot},
    time::Instant,
};
use unbraid_core::{ChoiceIndex, Metadata, StreamError, TimedOut, Timeout};
use unbraid_log::{End, LogError, StreamId};

pub(crate) use self::{actor::Supervisor, keeper::GenerationLog, part::PartSource};
use self::{
    clock::Clock,
    keeper::Keeper,
    part::Part,
    tracker::{Identity, Role},
};
use crate::{
    config::Options,
    limits::{IDLE_END, READ_BYTES},
    metrics::Metrics,
    seldom::Seldom,
    streams::{Cancelled, Command, Registration},
};

/// The upstream's answer to a request: what a generation reads.
pub(crate) struct Started {
    pub(crate) parts: Vec<StartedPart>,
    /// Sends the request for one further choice, if the first body turns out to have one choice only.
    pub(crate) singles: Option<Singles>,
}

impl Started {
    /// Whether each choice has a request of its own. More may follow from the first body.
    pub(crate) fn is_fan_out(&self) -> bool {
        self.parts.iter().any(|part| part.choice.is_some())
    }
}

pub(crate) struct StartedPart {
    pub(crate) source: PartSource,
    /// The choice of the body; `None` if it has all of them.
    pub(crate) choice: Option<ChoiceIndex>,
}

/// Requests for single choices that may become necessary.
pub(crate) struct Singles {
    pub(crate) n: u32,
    pub(crate) request: Box<dyn FnMut(ChoiceIndex) -> PartSource + Send>,
    /// Called once it is known that the model gives one choice only.
    pub(crate) remember: Box<dyn FnOnce() + Send>,
}

/// Why a request has no answer: the error object of the stream's status, as JSON text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RefusedError(pub(crate) String);

/// A request whose answer has not begun.
pub(crate) type Start = BoxFuture<'static, Result<Started, RefusedError>>;

/// What a generation needs.
pub(crate) struct GenerationArgs {
    pub(crate) start: Start,
    pub(crate) log: GenerationLog,
    pub(crate) registration: Registration,
    pub(crate) commands: mpsc::UnboundedReceiver<Command>,
    pub(crate) endpoint: &'static str,
    /// The number of choices that were requested.
    pub(crate) expected: u32,
    pub(crate) orphan_after: Option<Duration>,
    /// Whether the client asked for usage in the stream.
    pub(crate) wants_usage: bool,
    /// Called if the request was refused, before the log is sealed.
    pub(crate) on_refused: Option<BoxFuture<'static, ()>>,
    pub(crate) metrics: Metrics,
}

/// A generation. It is boxed, because ractor moves an actor's arguments through several futures.
pub(crate) struct Generation {
    start: Option<Start>,
    parts: Vec<Part>,
    singles: Option<Singles>,
    /// Whether the choices come from several bodies.
    is_fan_out: bool,
    expected: u32,
    max_choices: u32,
    max_bytes: u64,
    wants_usage: bool,
    identity: Identity,
    keeper: Keeper,
    commands: mpsc::UnboundedReceiver<Command>,
    commands_are_seldom: Seldom,
    registration: Registration,
    clock: Clock,
    /// Choices that were cancelled before the answer began.
    cancelled_early: Vec<(ChoiceIndex, Option<oneshot::Sender<Cancelled>>)>,
    /// Choices that were cancelled before they appeared.
    cancelled_unseen: BTreeSet<ChoiceIndex>,
    /// Results of commands that are reported once the log has them.
    replies: Vec<(oneshot::Sender<Cancelled>, Cancelled)>,
    on_refused: Option<BoxFuture<'static, ()>>,
    refused: Option<RefusedError>,
    /// The end, if it does not follow from the bodies.
    end: Option<End>,
    metrics: Metrics,
}

/// Why the generation woke up.
enum Wakeup {
    Started(Result<Started, RefusedError>),
    Read,
    Command(Command),
    /// The log refuses events, or has what is waited for.
    Log,
    Tick(Tick),
}

/// A deadline that has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tick {
    /// Silence ends the choices that have a finish reason.
    Idle,
    TimedOut,
    Orphaned,
    Renew,
    /// What has arrived is to be appended now.
    Linger,
}

impl Generation {
    pub(crate) fn new(args: GenerationArgs, options: &Options) -> Box<Self> {
        let keeper = Keeper::new(args.log, args.metrics.clone());
        Box::new(Self {
            start: Some(args.start),
            parts: Vec::new(),
            singles: None,
            is_fan_out: false,
            expected: args.expected,
            max_choices: options.max_n.max(args.expected),
            max_bytes: options.max_stream_bytes,
            wants_usage: args.wants_usage,
            identity: Identity {
                metadata: Metadata::default(),
                endpoint: args.endpoint,
            },
            keeper,
            commands: args.commands,
            commands_are_seldom: Seldom::default(),
            registration: args.registration,
            clock: Clock::new(options, args.orphan_after),
            cancelled_early: Vec::new(),
            cancelled_unseen: BTreeSet::new(),
            replies: Vec::new(),
            on_refused: args.on_refused,
            refused: None,
            end: None,
            metrics: args.metrics,
        })
    }

    fn id(&self) -> &StreamId {
        &self.registration.live.id
    }

    /// Reads until the generation has ended, and seals its log.
    async fn run(mut self: Box<Self>) {
        while self.end.is_none() && !self.has_read_all() {
            let wakeup = poll_fn(|cx| self.poll(cx)).await;
            let flushes = !matches!(wakeup, Wakeup::Read) || !self.clock.lingers();
            self.handle(wakeup).await;
            if flushes && let Err(error) = self.keeper.flush().await {
                self.log_failed(&error);
            }
            // The end of the stream belongs to the result, too.
            if self.keeper.is_flushed() && self.end.is_none() && !self.has_read_all() {
                self.send_replies();
            }
            // A body that is always ready must not starve the other tasks.
            tokio::task::consume_budget().await;
        }
        self.close().await;
        self.send_replies();
    }

    /// Whether every body has ended, and none follows.
    fn has_read_all(&self) -> bool {
        self.start.is_none() && self.singles.is_none() && self.parts.iter().all(Part::is_closed)
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Wakeup> {
        // Commands come first: a body that is always ready must not keep a cancel waiting.
        let commands = &mut self.commands;
        let command = self
            .commands_are_seldom
            .poll(cx, |cx| commands.poll_recv(cx));
        if let Poll::Ready(Some(command)) = command {
            return Poll::Ready(Wakeup::Command(command));
        }
        if self
            .keeper
            .poll_log(cx, !self.replies.is_empty())
            .is_ready()
        {
            return Poll::Ready(Wakeup::Log);
        }
        if let Some(start) = &mut self.start
            && let Poll::Ready(started) = start.as_mut().poll(cx)
        {
            self.start = None;
            return Poll::Ready(Wakeup::Started(started));
        }
        if self.poll_parts(cx).is_ready() {
            return Poll::Ready(Wakeup::Read);
        }
        self.poll_clock(cx).map(Wakeup::Tick)
    }

    fn poll_parts(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Self {
            parts,
            identity,
            keeper,
            ..
        } = self;
        let mut now = None;
        for part in parts.iter_mut().filter(|part| !part.is_closed()) {
            let max = READ_BYTES;
            if part
                .poll_read(cx, max, identity, &mut keeper.events)
                .is_ready()
            {
                part.touch(*now.get_or_insert_with(Instant::now));
            }
        }
        let Some(now) = now else {
            return Poll::Pending;
        };
        self.registration.live.set_received(now);
        Poll::Ready(())
    }

    fn poll_clock(&mut self, cx: &mut Context<'_>) -> Poll<Tick> {
        let parts = || self.parts.iter();
        let finished_since = parts().filter_map(Part::finished_since).min();
        let silent_since = parts().filter_map(Part::silent_since).min();
        let has_readers = self.registration.live.has_readers();
        let has_events = !self.keeper.events.is_empty();
        self.clock.poll(
            cx,
            clock::Conditions {
                finished_since,
                silent_since,
                has_readers,
                has_events,
            },
        )
    }

    async fn handle(&mut self, wakeup: Wakeup) {
        match wakeup {
            Wakeup::Started(Ok(started)) => self.open(started),
            Wakeup::Started(Err(refused)) => {
                self.refused = Some(refused);
                self.end = Some(End::Refused);
            }
            Wakeup::Read => self.after_read(),
            Wakeup::Command(command) => self.handle_command(command),
            // The flush that follows finds out which.
            Wakeup::Log => {}
            Wakeup::Tick(tick) => self.handle_tick(tick).await,
        }
    }

    fn open(&mut self, started: Started) {
        self.is_fan_out = started.is_fan_out();
        self.singles = started.singles;
        if self.singles.is_none() {
            self.registration.set_fan_out(self.is_fan_out);
        }
        for part in started.parts {
            let role = match part.choice {
                Some(choice) => Role::Single(choice),
                None if self.singles.is_some() => Role::MaybeWhole,
                None => Role::Whole,
            };
            self.parts
                .push(Part::new(part.source, role, self.max_choices));
        }
        for (choice, reply) in std::mem::take(&mut self.cancelled_early) {
            self.cancel_choice(choice, reply);
        }
    }

    fn after_read(&mut self) {
        let held: u64 = self
            .parts
            .iter()
            .map(|part| part.tracker.held_bytes())
            .sum();
        if self.keeper.bytes() + held > self.max_bytes {
            let limit = unbraid_core::Limit::CompletionBytes;
            let error = unbraid_core::LimitExceeded::new(limit, self.max_bytes);
            return self.abort(End::LimitExceeded, &StreamError::Limit(error));
        }
        self.request_missing();
        self.close_if_cancelled();
    }

    /// Requests the choices that the first body did not have, once it has ended with one.
    fn request_missing(&mut self) {
        let Some(first) = self.parts.first().filter(|_| self.singles.is_some()) else {
            return;
        };
        if self.registration.is_counted() && !first.is_closed() {
            return;
        }
        let known = first.tracker.choices();
        let seen = known.iter();
        let seen = seen
            .filter(|choice| !self.cancelled_unseen.contains(&choice.index))
            .count();
        if seen > 1 {
            self.registration.set_fan_out(false);
        }
        if !first.is_closed() {
            return;
        }
        let Some(mut singles) = self.singles.take() else {
            return;
        };
        let missing: Vec<ChoiceIndex> = (1..singles.n)
            .map(ChoiceIndex)
            .filter(|choice| !self.cancelled_unseen.contains(choice))
            .filter(|choice| !known.iter().any(|known| known.index == *choice))
            .collect();
        let is_complete = first.tracker.closed().is_some_and(Result::is_ok);
        // If every other choice was cancelled before it appeared, nothing can be concluded.
        let is_single = is_complete && seen == 1 && !missing.is_empty();
        for part in &mut self.parts {
            part.tracker
                .resolve_held(!is_single, &mut self.keeper.events);
        }
        self.registration.set_fan_out(is_single);
        if !is_single {
            return;
        }
        (singles.remember)();
        self.is_fan_out = true;
        for choice in missing {
            let source = (singles.request)(choice);
            self.parts
                .push(Part::new(source, Role::Single(choice), self.max_choices));
        }
    }

    async fn handle_tick(&mut self, tick: Tick) {
        match tick {
            Tick::Idle => self.end_finished(),
            Tick::TimedOut => self.time_out(),
            Tick::Orphaned => {
                self.cancel_all();
            }
            Tick::Renew => {
                if let Err(error) = self.keeper.renew().await
                    && !error.is_temporary()
                {
                    self.log_failed(&error);
                }
            }
            Tick::Linger => {}
        }
    }

    /// Ends the choices that have a finish reason in the bodies that are silent.
    fn end_finished(&mut self) {
        let now = Instant::now();
        let is_silent = |since: Instant| now.duration_since(since) >= IDLE_END;
        for part in &mut self.parts {
            if part.finished_since().is_some_and(is_silent) {
                part.tracker
                    .handle_idle(&self.identity, &mut self.keeper.events);
            }
        }
        self.close_if_cancelled();
    }

    /// Ends the bodies that are silent for too long. The other choices of a fan-out continue.
    fn time_out(&mut self) {
        let now = Instant::now();
        let idle = self.clock.idle_timeout();
        let is_silent = |since: Instant| now.duration_since(since) >= idle;
        let error = StreamError::TimedOut(TimedOut::new(Timeout::Idle, idle));
        let silent = |part: &&mut Part| part.silent_since().is_some_and(is_silent);
        for part in self.parts.iter_mut().filter(silent) {
            if !matches!(part.tracker.role, Role::Single(_)) {
                return self.abort(End::TimedOut, &error);
            }
            part.fail(
                Some(error.clone()),
                &mut self.identity,
                &mut self.keeper.events,
            );
        }
        self.close_if_cancelled();
    }

    /// Ends every open choice with an error, and closes the upstream.
    fn abort(&mut self, end: End, error: &StreamError) {
        self.end = Some(end);
        self.singles = None;
        self.release_held();
        for part in self.parts.iter_mut().filter(|part| !part.is_closed()) {
            part.fail(
                Some(error.clone()),
                &mut self.identity,
                &mut self.keeper.events,
            );
        }
    }

    /// The log refuses events: it was erased, sealed by another gateway, or is not available and the policy is to fail.
    fn log_failed(&mut self, error: &LogError) {
        if self.end.is_some() {
            return;
        }
        tracing::warn!(id = %self.id(), %error, "the log of a generation failed");
        self.abort(ends::end_of_log(error), &StreamError::Lost);
    }
}

/// Shows the id, and nothing that a client or an upstream has sent.
impl fmt::Debug for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Generation")
            .field("id", self.id())
            .finish_non_exhaustive()
    }
}
