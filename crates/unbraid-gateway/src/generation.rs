//! One generation: its actor owns the upstream's bodies, the core's state of each, and the log.
//!
//! Data does not pass through mailboxes: it travels from the body into a record, and from the log to the readers.

mod actor;
mod clock;
mod commands;
mod deadlines;
mod ends;
mod keeper;
mod part;
mod rewrite;
mod singles;
mod start;
#[cfg(test)]
mod tests;
mod tracker;

use std::{
    collections::BTreeSet,
    fmt,
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll},
};

use futures::future::BoxFuture;
use tokio::{
    sync::{mpsc, oneshot},
    time::Instant,
};
use unbraid_core::{ChoiceIndex, StreamError};
use unbraid_log::{End, LogError, StreamId};

pub(crate) use self::{
    actor::Supervisor,
    keeper::GenerationLog,
    part::PartSource,
    start::{GenerationArgs, RefusedError, Singles, Start, Started, StartedPart},
};
use self::{
    clock::Clock,
    keeper::Keeper,
    part::Part,
    tracker::{Identity, Role},
};
use crate::{
    config::Options,
    fan_out::DroppedChoices,
    limits::READ_BYTES,
    metrics::Metrics,
    streams::{Cancelled, Command, Registration},
    sync::wake_gate::WakeGate,
};

/// A generation. It is boxed, because ractor moves an actor's arguments through several futures.
// What a delta needs comes first: see docs/design/020.
#[repr(C)]
pub(crate) struct Generation {
    command_gate: WakeGate,
    start: Option<Start>,
    parts: Vec<Part>,
    /// The end, if it does not follow from the bodies.
    end: Option<End>,
    keeper: Keeper,
    /// Whether gateways in other processes may have readers.
    is_shared: bool,
    registration: Registration,
    /// Results of commands that are reported once the log has them.
    replies: Vec<(oneshot::Sender<Cancelled>, Cancelled)>,
    singles: Option<Singles>,
    max_bytes: u64,
    clock: Clock,
    identity: Identity,
    commands: mpsc::UnboundedReceiver<Command>,
    /// Whether the choices come from several bodies.
    is_fan_out: bool,
    wants_usage: bool,
    expected: u32,
    max_choices: u32,
    /// Choices that are cancelled before the answer has begun.
    dropped: Arc<DroppedChoices>,
    /// Choices that were cancelled before they appeared.
    cancelled_unseen: BTreeSet<ChoiceIndex>,
    on_refused: Option<BoxFuture<'static, ()>>,
    refused: Option<RefusedError>,
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
            dropped: args.dropped,
            max_choices: options.max_n.max(args.expected),
            max_bytes: options.max_stream_bytes,
            wants_usage: args.wants_usage,
            identity: Identity::new(args.endpoint, args.created, args.model)
                .with_own_id(args.registration.live.id.as_str()),
            keeper,
            is_shared: args.is_shared,
            commands: args.commands,
            command_gate: WakeGate::default(),
            registration: args.registration,
            clock: Clock::new(options, args.orphan_after),
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
            let lingers = self.clock.lingers() && matches!(wakeup, Wakeup::Read);
            let flushes = !lingers || !self.keeper.may_linger();
            let is_command = matches!(wakeup, Wakeup::Command(_));
            self.handle(wakeup).await;
            // A command gets the state that its caller reads next.
            self.write_late_ends(is_command);
            // The gateway's own event precedes all chunks of the upstreams. They get its id, so that the stream has one.
            if self.is_fan_out && !self.identity.has_chunks && !self.keeper.events.is_empty() {
                self.identity.keep_own();
            }
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
        let command = self.command_gate.poll(cx, |cx| commands.poll_recv(cx));
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
        let log_fails = self.is_shared && self.keeper.log_fails();
        self.clock.poll(
            cx,
            clock::Conditions {
                finished_since,
                silent_since,
                has_readers,
                has_events,
                log_fails,
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
        // Cancelled before it was known that this is a fan-out: their ends have the own id.
        if self.is_fan_out && !self.cancelled_unseen.is_empty() {
            self.identity.keep_own();
        }
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
        self.discard_cancelled();
    }

    fn after_read(&mut self) {
        self.request_missing();
        let held: u64 = self
            .parts
            .iter()
            .map(|part| part.tracker.held_bytes())
            .sum();
        // An answer that has ended brings nothing more.
        if self.keeper.bytes() + held > self.max_bytes && !self.has_read_all() {
            let limit = unbraid_core::Limit::CompletionBytes;
            let error = unbraid_core::LimitExceeded::new(limit, self.max_bytes);
            return self.abort(End::LimitExceeded, &StreamError::Limit(error));
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
