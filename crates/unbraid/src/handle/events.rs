//! Cursors over whole events: of one choice, and of the stream with all its choices.

use std::{
    collections::VecDeque,
    sync::Arc,
    task::{Context, Poll},
};

use serde_json::Value;
use unbraid_core::{
    ChoiceError, ChoiceIndex, Event, Position, Sequenced, StreamError, internal::EventFilter,
};

use super::{coop_budget::CoopBudget, cursor, text::cut};
use crate::{
    control::CancelOnDrop,
    state::{
        choice_log::{ChoiceLog, LogState},
        completion::CompletionState,
    },
    sync::{
        shared::{Read, Shared, Watcher},
        wait_list::Interest,
    },
};

/// The number of events that are copied out of a log at once.
const COPY_EVENTS: usize = 256;

/// The number of bytes of text that are copied out of a log at once.
const COPY_BYTES: usize = 64 * 1024;

/// A position in the events of a log.
#[derive(Clone)]
pub(crate) struct EventCursor {
    log: Watcher<LogState>,
    _guard: Arc<CancelOnDrop>,
    pub(super) filter: EventFilter,
    pub(super) seq: usize,
    copied: VecDeque<Sequenced>,
    budget: CoopBudget,
    pub(super) done: bool,
}

impl EventCursor {
    pub(super) fn new(log: &ChoiceLog, guard: &Arc<CancelOnDrop>, filter: EventFilter) -> Self {
        Self {
            log: Watcher::with_interest(interest_of(filter), log),
            _guard: Arc::clone(guard),
            filter,
            seq: 0,
            copied: VecDeque::new(),
            budget: CoopBudget::default(),
            done: false,
        }
    }

    pub(super) fn poll_event(
        &mut self,
        cx: &Context<'_>,
    ) -> Poll<Option<Result<Sequenced, ChoiceError>>> {
        if self.done {
            return Poll::Ready(None);
        }
        if self.budget.exhausted(cx) {
            return Poll::Pending;
        }
        if let Some(event) = self.copied.pop_front() {
            return Poll::Ready(Some(Ok(event)));
        }
        let Self {
            log,
            filter,
            seq,
            copied,
            ..
        } = self;
        let found = log.poll_read(cx, |state| {
            if copy(state, *filter, seq, copied) {
                return state.read_until(*seq, None);
            }
            state
                .stream_end()
                .map_or(Read::Pending, |error| Read::Partial(Some(error)))
        });
        match found {
            Poll::Pending => {
                self.budget.reset();
                Poll::Pending
            }
            Poll::Ready(None) => Poll::Ready(self.copied.pop_front().map(Ok)),
            Poll::Ready(Some(error)) => {
                self.done = true;
                Poll::Ready(error.map(Err))
            }
        }
    }
}

/// The part of a log whose changes concern these events.
fn interest_of(filter: EventFilter) -> Interest {
    match filter {
        EventFilter::All | EventFilter::Message => Interest::ALL,
        EventFilter::ToolCallStarts => Interest::CALLS,
        EventFilter::Logprobs => Interest::OTHER,
    }
}

/// Copies the next events that pass the filter out of a log, with their text in one buffer; returns false if there are none.
fn copy(
    state: &LogState,
    filter: EventFilter,
    seq: &mut usize,
    copied: &mut VecDeque<Sequenced>,
) -> bool {
    let mut text = String::new();
    let mut found = Vec::new();
    while found.len() < COPY_EVENTS && text.len() < COPY_BYTES {
        *seq = state.transcript.seek(filter, *seq);
        let Some(event) = state.transcript.event(*seq) else {
            break;
        };
        *seq += 1;
        found.push(event.map(|delta| {
            let start = text.len();
            text.push_str(delta);
            (start, text.len())
        }));
    }
    if found.is_empty() {
        return false;
    }
    let mut shared = None;
    let events = found
        .into_iter()
        .map(|event| event.map(|(start, end)| cut(&text, &mut shared, start, end)));
    copied.extend(events);
    true
}

/// All events of one choice, including its end; see [`Choice::events`](crate::Choice::events).
///
/// After the event `End` the stream returns `None`, or first the error that cut the choice. A clone continues from the same
/// position on its own. Dropping it cancels nothing while another handle lives.
///
/// # Examples
///
/// ```
/// # use futures::stream;
/// use unbraid::{Completions, Event};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let body = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
/// # let bytes = stream::iter([Ok::<_, std::io::Error>(body)]);
/// let mut events = Completions::from_byte_stream(bytes).first().await?.events();
/// while let Some(event) = events.next().await {
///     match event?.event {
///         Event::Content(text) => print!("{text}"),
///         Event::End(end) => println!("\n[{}]", end.as_str()),
///         _ => {}
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Events(pub(super) EventCursor);

impl Events {
    fn poll_item(&mut self, cx: &Context<'_>) -> Poll<Option<Result<Sequenced, ChoiceError>>> {
        self.0.poll_event(cx)
    }

    fn is_done(&self) -> bool {
        self.0.done
    }
}

cursor!(Events, Sequenced, ChoiceError);

/// The log probabilities of a choice, one JSON object per wire delta; see [`Choice::logprobs`](crate::Choice::logprobs).
///
/// After the end the stream returns `None`, or first the error that cut the choice. A clone continues from the same position
/// on its own. Dropping it cancels nothing while another handle lives.
///
/// # Examples
///
/// ```
/// # use futures::stream;
/// use unbraid::Completions;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let body = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
/// # let bytes = stream::iter([Ok::<_, std::io::Error>(body)]);
/// let mut logprobs = Completions::from_byte_stream(bytes).first().await?.logprobs();
/// while let Some(logprobs) = logprobs.next().await {
///     for token in logprobs?["content"].as_array().into_iter().flatten() {
///         println!("{}: {}", token["token"], token["logprob"]);
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Logprobs(pub(super) EventCursor);

impl Logprobs {
    fn poll_item(&mut self, cx: &Context<'_>) -> Poll<Option<Result<Value, ChoiceError>>> {
        loop {
            match self.0.poll_event(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(Err(error))),
                Poll::Ready(Some(Ok(Sequenced {
                    event: Event::Logprobs(raw),
                    ..
                }))) => {
                    let value = unbraid_core::internal::parsed(&raw);
                    return Poll::Ready(Some(Ok(value)));
                }
                Poll::Ready(Some(Ok(_))) => {}
            }
        }
    }

    fn is_done(&self) -> bool {
        self.0.done
    }
}

cursor!(Logprobs, Value, ChoiceError);

/// All events of all choices and of the stream itself, as they arrive; see [`Completions::events`](crate::Completions::events).
///
/// The events of one choice come in their order; [`Sequenced::sort_key`] orders them all, or those of one source if there are
/// several ([`merge`](crate::CompletionsBuilder::merge)). An error that ended the stream is an event first, and then the one
/// `Err`. A clone continues from the same position on its own. Dropping it cancels nothing while another handle lives.
///
/// # Examples
///
/// ```
/// # use futures::stream;
/// use unbraid::{Completions, Event};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let body = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"}},{\"index\":1,\"delta\":{\"content\":\"Hello\"}}]}\n\ndata: [DONE]\n\n";
/// # let bytes = stream::iter([Ok::<_, std::io::Error>(body)]);
/// let mut events = Completions::from_byte_stream(bytes).events();
/// while let Some(event) = events.next().await {
///     let event = event?;
///     if let (Some(choice), Event::Content(text)) = (event.choice, event.event) {
///         println!("{choice}: {text}");
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct AllEvents {
    completion: Watcher<CompletionState>,
    _guard: Arc<CancelOnDrop>,
    /// How many of the stream's own events were copied.
    pub(super) seq: usize,
    pub(super) choices: Vec<ChoicePosition>,
    /// In their order.
    copied: VecDeque<Sequenced>,
    /// The last event up to which `copied` has all of them; `None` if that is everything. Of a choice that is far ahead of its
    /// consumer, a part is copied at a time, and what other choices brought later has to wait for the rest.
    complete_to: Option<SortKey>,
    budget: CoopBudget,
    pub(super) done: bool,
}

type SortKey = (Position, Option<ChoiceIndex>, u64);

/// A position in the events of one choice.
#[derive(Clone)]
pub(super) struct ChoicePosition {
    log: Watcher<LogState>,
    seq: usize,
    /// The last event that was copied.
    last: Option<SortKey>,
    /// Whether the log has more events than were copied.
    has_more: bool,
    /// Whether it was read in this pass.
    is_read: bool,
}

impl AllEvents {
    pub(super) fn new(
        completion: &Arc<Shared<CompletionState>>,
        guard: &Arc<CancelOnDrop>,
    ) -> Self {
        Self {
            completion: Watcher::new(completion),
            _guard: Arc::clone(guard),
            seq: 0,
            choices: Vec::new(),
            copied: VecDeque::new(),
            complete_to: None,
            budget: CoopBudget::default(),
            done: false,
        }
    }

    fn poll_item(&mut self, cx: &Context<'_>) -> Poll<Option<Result<Sequenced, StreamError>>> {
        if self.done {
            return Poll::Ready(None);
        }
        if self.budget.exhausted(cx) {
            return Poll::Pending;
        }
        if let Some(event) = self.next_copied() {
            return Poll::Ready(Some(Ok(event)));
        }
        // The completion is read first: once it has closed, no log grows any more, so the choices below are complete.
        let closed = self.poll_completion(cx);
        self.poll_choices(cx);
        self.copied
            .make_contiguous()
            .sort_by_key(Sequenced::sort_key);
        if let Some(event) = self.next_copied() {
            return Poll::Ready(Some(Ok(event)));
        }
        match closed {
            Poll::Pending => {
                self.budget.reset();
                Poll::Pending
            }
            Poll::Ready(result) => {
                self.done = true;
                Poll::Ready(result.err().map(Err))
            }
        }
    }

    fn next_copied(&mut self) -> Option<Sequenced> {
        let next = self.copied.front()?.sort_key();
        let is_next = self.complete_to.is_none_or(|last| next <= last);
        is_next.then(|| self.copied.pop_front()).flatten()
    }

    /// Copies the stream's own events; ready once the stream has closed.
    fn poll_completion(&mut self, cx: &Context<'_>) -> Poll<Result<(), StreamError>> {
        let Self {
            completion,
            seq,
            choices,
            copied,
            ..
        } = self;
        completion.poll(cx, |state| {
            copied.extend(state.events_from(*seq));
            *seq = state.events.len();
            let new = state.choices.iter().skip(choices.len());
            choices.extend(new.map(|log| ChoicePosition {
                log: Watcher::new(log),
                seq: 0,
                last: None,
                has_more: false,
                is_read: false,
            }));
            state
                .closed
                .as_ref()
                .map_or(Poll::Pending, |closed| Poll::Ready(closed.result.clone()))
        })
    }

    /// Copies events of each choice whose copied ones are about to be returned. A choice with events that wait for another choice
    /// is not read, so that few are copied.
    fn poll_choices(&mut self, cx: &Context<'_>) {
        let Self {
            choices,
            copied,
            complete_to,
            ..
        } = self;
        choices.iter_mut().for_each(|choice| choice.is_read = false);
        loop {
            let mut has_read = false;
            for choice in choices.iter_mut() {
                let waits = complete_to.is_some_and(|to| choice.last.is_some_and(|last| last > to));
                if !choice.is_read && !waits {
                    choice.read(cx, copied);
                    has_read = true;
                }
            }
            let partial = choices.iter().filter(|choice| choice.has_more);
            *complete_to = partial.filter_map(|choice| choice.last).min();
            // Reading one choice may allow another one's events to be returned, after which that has to be read, too.
            if !has_read {
                return;
            }
        }
    }

    fn is_done(&self) -> bool {
        self.done
    }
}

impl ChoicePosition {
    /// Copies the next events.
    fn read(&mut self, cx: &Context<'_>, copied: &mut VecDeque<Sequenced>) {
        let Self {
            log, seq, has_more, ..
        } = self;
        let before = copied.len();
        let _ready: Poll<()> = log.poll_read(cx, |state| {
            copy(state, EventFilter::All, seq, copied);
            *has_more = *seq < state.transcript.event_count();
            state.read_until(*seq, ())
        });
        if copied.len() > before {
            self.last = copied.back().map(Sequenced::sort_key);
        }
        self.is_read = true;
    }
}

cursor!(AllEvents, Sequenced, StreamError);
