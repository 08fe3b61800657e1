//! Cursors over one kind of text of a choice: content, reasoning, refusal.

use std::{
    fmt,
    sync::Arc,
    task::{Context, Poll},
};

use unbraid_core::{ChoiceError, Text, TextOf};

use super::{Turns, cursor};
use crate::{
    control::Guard,
    log::{Log, Record},
    watched::Watcher,
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
    fn of(self) -> TextOf {
        match self {
            Self::Content => TextOf::Content,
            Self::Reasoning => TextOf::Reasoning,
            Self::Refusal => TextOf::Refusal,
            Self::Arguments(call) => TextOf::Arguments(call),
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
    copied: Arc<str>,
    /// Room for the next copy.
    room: String,
    /// Where each copied delta ends.
    ends: Vec<usize>,
    /// The next of them to give.
    given: usize,
    turns: Turns,
    pub(crate) done: bool,
}

/// What looking at the log came to.
enum Look {
    Copied,
    Over(Option<ChoiceError>),
}

impl Cursor {
    pub(crate) fn new(log: &Arc<Log>, guard: &Arc<Guard>, lane: Lane) -> Self {
        Self {
            log: Watcher::new(log),
            _guard: Arc::clone(guard),
            lane,
            seq: 0,
            copied: Arc::from(""),
            room: String::new(),
            ends: Vec::new(),
            given: 0,
            turns: Turns::default(),
            done: false,
        }
    }

    pub(crate) fn poll_item(
        &mut self,
        cx: &Context<'_>,
    ) -> Poll<Option<Result<Text, ChoiceError>>> {
        if let Some(text) = self.take_one() {
            return self.give(text, cx);
        }
        match self.poll_copy(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Some(error)) => Poll::Ready(error),
            Poll::Ready(None) => {
                let text = self.take_one().unwrap_or_default();
                self.give(text, cx)
            }
        }
    }

    /// As `poll_item`, but everything that has gathered is one item.
    fn poll_gathered(&mut self, cx: &Context<'_>) -> Poll<Option<Result<Text, ChoiceError>>> {
        if self.given >= self.ends.len() {
            match self.poll_copy(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Some(end)) => return Poll::Ready(end),
                Poll::Ready(None) => {}
            }
        }
        let start = self.start();
        self.given = self.ends.len();
        Poll::Ready(Some(Ok(Text::slice(
            &self.copied,
            start,
            self.copied.len(),
        ))))
    }

    fn give(&mut self, text: Text, cx: &Context<'_>) -> Poll<Option<Result<Text, ChoiceError>>> {
        if self.turns.over(cx) {
            self.given -= 1; // it is given on the next poll
            return Poll::Pending;
        }
        Poll::Ready(Some(Ok(text)))
    }

    fn start(&self) -> usize {
        self.given
            .checked_sub(1)
            .and_then(|last| self.ends.get(last))
            .copied()
            .unwrap_or(0)
    }

    fn take_one(&mut self) -> Option<Text> {
        let end = *self.ends.get(self.given)?;
        let text = Text::slice(&self.copied, self.start(), end);
        self.given += 1;
        Some(text)
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
            room,
            ends,
            ..
        } = self;
        ends.clear();
        room.clear();
        let look = log.poll(cx, |record| look(record, *lane, seq, room, ends));
        match look {
            Poll::Pending => {
                self.turns.rest();
                self.given = 0;
                Poll::Pending
            }
            Poll::Ready(Look::Copied) => {
                self.copied = self.room.as_str().into();
                self.room.shrink_to(ROOM_BYTES);
                self.given = 0;
                Poll::Ready(None)
            }
            Poll::Ready(Look::Over(error)) => {
                self.done = true;
                self.copied = Arc::from("");
                self.room = String::new();
                self.given = 0;
                Poll::Ready(Some(error.map(Err)))
            }
        }
    }
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
) -> Poll<Look> {
    let transcript = &record.transcript;
    *seq = transcript.gather(lane.of(), *seq, COPY_BYTES, room, ends);
    if !room.is_empty() {
        return Poll::Ready(Look::Copied);
    }
    record
        .over()
        .map_or(Poll::Pending, |error| Poll::Ready(Look::Over(error)))
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
