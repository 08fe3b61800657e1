//! Cursors over one kind of text of a choice: content, reasoning, refusal.

use std::{
    fmt,
    sync::Arc,
    task::{Context, Poll, ready},
};

use unbraid_core::{ChoiceError, Text, TextKind};

use super::{Turns, cursor};
use crate::{
    control::Guard,
    state::choice_log::{Log, Record},
    sync::shared::{Look, Watcher},
    sync::wait_list::Topics,
};

/// Bytes that are copied out of a log at once: a replay holds its lock this long, and a kept delta this much memory.
const COPY_BYTES: usize = 64 * 1024;

/// Room for copies that is kept between wakes: what a read brings, not what a replay does.
const ROOM_BYTES: usize = 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lane {
    Content,
    Reasoning,
    Refusal,
    /// The arguments of the call with this ordinal.
    Arguments(u32),
}

impl Lane {
    fn of(self) -> TextKind {
        match self {
            Self::Content => TextKind::Content,
            Self::Reasoning => TextKind::Reasoning,
            Self::Refusal => TextKind::Refusal,
            Self::Arguments(call) => TextKind::Arguments(call),
        }
    }

    fn topics(self) -> Topics {
        match self {
            Self::Content | Self::Reasoning | Self::Refusal => Topics::TEXTS,
            Self::Arguments(_) => Topics::CALLS,
        }
    }
}

/// A place in one lane of a log. What was copied out is given without a lock, one item a wire delta.
#[derive(Clone)]
pub(crate) struct Cursor {
    log: Watcher<Record>,
    _guard: Arc<Guard>,
    lane: Lane,
    /// The next event of the log to look at.
    seq: usize,
    copied: String,
    /// The same, once a delta is too long to be copied again.
    shared: Option<Arc<str>>,
    /// Where each copied delta ends.
    ends: Vec<usize>,
    /// The next of them to give, and where it starts.
    given: usize,
    start: usize,
    turns: Turns,
    pub(crate) done: bool,
}

/// What was found in the log.
enum Found {
    Copied,
    Over(Option<ChoiceError>),
}

impl Cursor {
    pub(crate) fn new(log: &Log, guard: &Arc<Guard>, lane: Lane) -> Self {
        Self {
            log: Watcher::of(lane.topics(), log),
            _guard: Arc::clone(guard),
            lane,
            seq: 0,
            copied: String::new(),
            shared: None,
            ends: Vec::new(),
            given: 0,
            start: 0,
            turns: Turns::default(),
            done: false,
        }
    }

    pub(crate) fn poll_item(
        &mut self,
        cx: &Context<'_>,
    ) -> Poll<Option<Result<Text, ChoiceError>>> {
        if self.given >= self.ends.len()
            && let Some(end) = ready!(self.poll_copy(cx))
        {
            return Poll::Ready(end);
        }
        if self.turns.over(cx) {
            return Poll::Pending;
        }
        let end = self.ends.get(self.given).copied().unwrap_or(self.start);
        let text = cut(&self.copied, &mut self.shared, self.start, end);
        self.start = end;
        self.given += 1;
        Poll::Ready(Some(Ok(text)))
    }

    /// As `poll_item`, but everything that has gathered is one item.
    fn poll_gathered(&mut self, cx: &Context<'_>) -> Poll<Option<Result<Text, ChoiceError>>> {
        if self.given >= self.ends.len()
            && let Some(end) = ready!(self.poll_copy(cx))
        {
            return Poll::Ready(end);
        }
        self.given = self.ends.len();
        let rest = self.copied.get(self.start..).unwrap_or_default();
        Poll::Ready(Some(Ok(Text::from(rest))))
    }

    /// Copies what is there; `Some` is the end of the stream.
    fn poll_copy(&mut self, cx: &Context<'_>) -> Poll<Option<Option<Result<Text, ChoiceError>>>> {
        if self.done {
            return Poll::Ready(Some(None));
        }
        let Self {
            log,
            lane,
            seq,
            copied,
            ends,
            ..
        } = self;
        ends.clear();
        copied.clear();
        copied.shrink_to(ROOM_BYTES);
        let found = log.poll_look(cx, |record| look(record, *lane, seq, copied, ends));
        (self.given, self.start, self.shared) = (0, 0, None);
        match found {
            Poll::Pending => {
                self.turns.rest();
                Poll::Pending
            }
            Poll::Ready(Found::Copied) => Poll::Ready(None),
            Poll::Ready(Found::Over(error)) => {
                self.done = true;
                self.copied = String::new();
                Poll::Ready(Some(error.map(Err)))
            }
        }
    }
}

/// Cuts a delta out of what was copied: a long one without copying it again, out of a shared copy of all.
pub(crate) fn cut(copied: &str, shared: &mut Option<Arc<str>>, start: usize, end: usize) -> Text {
    let text = copied.get(start..end).unwrap_or_default();
    Text::short(text).unwrap_or_else(|| {
        let shared = shared.get_or_insert_with(|| Arc::from(copied));
        Text::slice(shared, start, end)
    })
}

/// Copies the next deltas of a lane, and where each of them ends.
pub(crate) fn copy(record: &Record, lane: Lane, seq: &mut usize, ends: &mut Vec<usize>) -> String {
    let mut text = String::new();
    let transcript = &record.transcript;
    *seq = transcript.gather(lane.of(), *seq, COPY_BYTES, &mut text, ends);
    text
}

fn look(
    record: &Record,
    lane: Lane,
    seq: &mut usize,
    room: &mut String,
    ends: &mut Vec<usize>,
) -> Look<Found> {
    let transcript = &record.transcript;
    *seq = transcript.gather(lane.of(), *seq, COPY_BYTES, room, ends);
    if room.is_empty() {
        return record
            .over()
            .map_or(Look::Nothing, |error| Look::Some(Found::Over(error)));
    }
    record.found(*seq, Found::Copied)
}

impl fmt::Debug for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cursor")
            .field("lane", &self.lane)
            .field("seq", &self.seq)
            .field("done", &self.done)
            .finish_non_exhaustive()
    }
}

macro_rules! text_cursor {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        ///
        /// One item a wire delta, verbatim: equal deltas, white space and pieces of one character are all given. After
        /// the end it gives `None`, or first the error that cut the choice. A clone goes on from the same place on its
        /// own. Dropping it frees and cancels nothing while another handle lives.
        #[derive(Debug, Clone)]
        pub struct $name(pub(crate) Cursor);

        impl $name {
            fn poll_item(&mut self, cx: &Context<'_>) -> Poll<Option<Result<Text, ChoiceError>>> {
                self.0.poll_item(cx)
            }

            fn is_done(&self) -> bool {
                self.0.done
            }

            /// The same text, but everything that has gathered comes as one item: for consumers slower than the model.
            #[must_use]
            pub fn coalesced(self) -> Coalesced {
                Coalesced(self.0)
            }
        }

        cursor!($name, Text, ChoiceError);
    };
}

text_cursor! {
    /// The text of a choice; see [`Choice::content`](crate::Choice::content).
    Content
}
text_cursor! {
    /// The reasoning of a choice; see [`Choice::reasoning`](crate::Choice::reasoning).
    Reasoning
}
text_cursor! {
    /// The refusal of a choice; see [`Choice::refusal`](crate::Choice::refusal).
    Refusal
}

/// Text as it has gathered since the last item, at most 64 KiB and one delta at once; see [`Content::coalesced`].
#[derive(Debug, Clone)]
pub struct Coalesced(Cursor);

impl Coalesced {
    fn poll_item(&mut self, cx: &Context<'_>) -> Poll<Option<Result<Text, ChoiceError>>> {
        self.0.poll_gathered(cx)
    }

    fn is_done(&self) -> bool {
        self.0.done
    }
}

cursor!(Coalesced, Text, ChoiceError);
