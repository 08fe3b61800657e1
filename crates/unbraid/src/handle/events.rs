//! Cursors over whole events: of one choice, and of the stream with all its choices.

use std::{
    collections::VecDeque,
    sync::Arc,
    task::{Context, Poll},
};

use serde_json::Value;
use unbraid_core::{ChoiceError, Event, EventFilter, Sequenced, StreamError};

use super::{Turns, cursor, text::cut};
use crate::{
    control::Guard,
    state::choice_log::{Log, Record},
    state::completion::{Board, Listing},
    sync::shared::{Look, Watcher},
    sync::wait_list::Topics,
};

/// Events that are copied out of a log at once.
const COPY_EVENTS: usize = 256;

/// Bytes of text that are copied out of a log at once.
const COPY_BYTES: usize = 64 * 1024;

/// A place in the events of a log.
#[derive(Clone)]
pub(crate) struct EventCursor {
    log: Watcher<Record>,
    _guard: Arc<Guard>,
    pub(super) wanted: EventFilter,
    pub(super) seq: usize,
    copied: VecDeque<Sequenced>,
    turns: Turns,
    pub(crate) done: bool,
}

impl EventCursor {
    pub(crate) fn new(log: &Log, guard: &Arc<Guard>, wanted: EventFilter) -> Self {
        Self {
            log: Watcher::of(topics(wanted), log),
            _guard: Arc::clone(guard),
            wanted,
            seq: 0,
            copied: VecDeque::new(),
            turns: Turns::default(),
            done: false,
        }
    }

    pub(crate) fn poll_event(
        &mut self,
        cx: &Context<'_>,
    ) -> Poll<Option<Result<Sequenced, ChoiceError>>> {
        if self.done {
            return Poll::Ready(None);
        }
        if self.turns.over(cx) {
            return Poll::Pending;
        }
        if let Some(event) = self.copied.pop_front() {
            return Poll::Ready(Some(Ok(event)));
        }
        let Self {
            log,
            wanted,
            seq,
            copied,
            ..
        } = self;
        let found = log.poll_look(cx, |record| {
            if copy(record, *wanted, seq, copied) {
                return record.found(*seq, None);
            }
            record
                .over()
                .map_or(Look::Nothing, |error| Look::Some(Some(error)))
        });
        match found {
            Poll::Pending => {
                self.turns.rest();
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

fn topics(wanted: EventFilter) -> Topics {
    match wanted {
        EventFilter::All | EventFilter::Message => Topics::ALL,
        EventFilter::ToolCallStarts => Topics::CALLS,
        EventFilter::Logprobs => Topics::REST,
    }
}

/// Copies the next wanted events out of a log, their text in one buffer; false if there are none.
fn copy(
    record: &Record,
    wanted: EventFilter,
    seq: &mut usize,
    copied: &mut VecDeque<Sequenced>,
) -> bool {
    let mut text = String::new();
    let mut found = Vec::new();
    while found.len() < COPY_EVENTS && text.len() < COPY_BYTES {
        *seq = record.transcript.seek(wanted, *seq);
        let Some(stamped) = record.transcript.event(*seq) else {
            break;
        };
        *seq += 1;
        found.push(stamped.map(|piece| {
            let start = text.len();
            text.push_str(piece);
            (start, text.len())
        }));
    }
    if found.is_empty() {
        return false;
    }
    let mut shared = None;
    let texts = found
        .into_iter()
        .map(|stamped| stamped.map(|(start, end)| cut(&text, &mut shared, start, end)));
    copied.extend(texts);
    true
}

/// All events of one choice, its end included; see [`Choice::events`](crate::Choice::events).
///
/// After the event `ChoiceEnd` it gives `None`, or first the error that cut the choice. Dropping it frees and cancels nothing
/// while another handle lives.
#[derive(Clone)]
pub struct Events(pub(crate) EventCursor);

impl Events {
    fn poll_item(&mut self, cx: &Context<'_>) -> Poll<Option<Result<Sequenced, ChoiceError>>> {
        self.0.poll_event(cx)
    }

    fn is_done(&self) -> bool {
        self.0.done
    }
}

cursor!(Events, Sequenced, ChoiceError);

/// Log probabilities of a choice, one JSON object a wire delta; see [`Choice::logprobs`](crate::Choice::logprobs).
#[derive(Clone)]
pub struct Logprobs(pub(crate) EventCursor);

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
                    let value = unbraid_core::parsed(&raw);
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
/// Events of one choice come in their order; [`Sequenced::sort_key`] is the order of the whole. If an error ended the
/// stream it is an event, and then the one `Err`. Dropping it frees and cancels nothing while another handle lives.
#[derive(Clone)]
pub struct AllEvents {
    board: Watcher<Listing>,
    _guard: Arc<Guard>,
    /// Stream events that were copied.
    pub(super) seq: usize,
    /// One place a choice.
    pub(super) choices: Vec<(Watcher<Record>, usize)>,
    copied: VecDeque<Sequenced>,
    turns: Turns,
    pub(super) done: bool,
}

/// What the stream's own log came to.
enum Whole {
    Open,
    Closed(Result<(), StreamError>),
}

impl AllEvents {
    pub(crate) fn new(board: &Arc<Board>, guard: &Arc<Guard>) -> Self {
        Self {
            board: Watcher::new(board),
            _guard: Arc::clone(guard),
            seq: 0,
            choices: Vec::new(),
            copied: VecDeque::new(),
            turns: Turns::default(),
            done: false,
        }
    }

    fn poll_item(&mut self, cx: &Context<'_>) -> Poll<Option<Result<Sequenced, StreamError>>> {
        if self.done {
            return Poll::Ready(None);
        }
        if self.turns.over(cx) {
            return Poll::Pending;
        }
        if let Some(event) = self.copied.pop_front() {
            return Poll::Ready(Some(Ok(event)));
        }
        // The board first: once it says closed, no log grows any more.
        let whole = self.poll_board(cx);
        self.poll_choices(cx);
        self.copied
            .make_contiguous()
            .sort_by_key(Sequenced::sort_key);
        if let Some(event) = self.copied.pop_front() {
            return Poll::Ready(Some(Ok(event)));
        }
        match whole {
            Whole::Open => {
                self.turns.rest();
                Poll::Pending
            }
            Whole::Closed(result) => {
                self.done = true;
                Poll::Ready(result.err().map(Err))
            }
        }
    }

    /// Copies the stream's own events; waits for more unless it is closed.
    fn poll_board(&mut self, cx: &Context<'_>) -> Whole {
        let Self {
            board,
            seq,
            choices,
            copied,
            ..
        } = self;
        let look = board.poll(cx, |listing| {
            copied.extend(listing.events.iter().skip(*seq).cloned());
            *seq = listing.events.len();
            let new = listing.choices.iter().skip(choices.len());
            choices.extend(new.map(|log| (Watcher::new(log), 0)));
            listing
                .closed
                .as_ref()
                .map_or(Poll::Pending, |closed| Poll::Ready(closed.result.clone()))
        });
        match look {
            Poll::Pending => Whole::Open,
            Poll::Ready(result) => Whole::Closed(result),
        }
    }

    fn poll_choices(&mut self, cx: &Context<'_>) {
        let Self {
            choices, copied, ..
        } = self;
        for (log, seq) in choices {
            let _waits: Poll<()> = log.poll_look(cx, |record| {
                copy(record, EventFilter::All, seq, copied);
                record.found(*seq, ())
            });
        }
    }

    fn is_done(&self) -> bool {
        self.done
    }
}

cursor!(AllEvents, Sequenced, StreamError);
