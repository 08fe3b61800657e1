//! Cursors over one text of a choice: content, reasoning, refusal, arguments.

use std::{
    fmt,
    sync::Arc,
    task::{Context, Poll, ready},
};

use smallvec::SmallVec;
use unbraid_core::{ChoiceError, Text, internal::TextKind};

use super::{coop_budget::CoopBudget, cursor};
use crate::{
    control::CancelOnDrop,
    state::choice_log::{ChoiceLog, LogState},
    sync::{
        shared::{Read, Watcher},
        wait_list::Interest,
    },
};

/// The number of bytes that are copied out of a log at once: a replay holds the lock for so long, and a kept delta keeps so
/// much memory.
const COPY_BYTES: usize = 64 * 1024;

/// The capacity for copies that is kept between wake-ups: enough for what a read brings, not for what a replay does.
const KEPT_CAPACITY: usize = 1024;

/// Where copied deltas end. Many servers send one event at a time, so most copies have a single delta.
type Ends = SmallVec<[usize; 2]>;

/// A position in one text of a log. What was copied out of the log is returned without a lock, one item per wire delta.
#[derive(Clone)]
pub(crate) struct TextCursor {
    log: Watcher<LogState>,
    _guard: Arc<CancelOnDrop>,
    kind: TextKind,
    /// The next event of the log to read.
    seq: usize,
    copied: String,
    /// The same text, shared, once a delta is too long to be copied again.
    shared: Option<Arc<str>>,
    /// Where each copied delta ends.
    ends: Ends,
    /// The next delta to return, and where it starts.
    next: usize,
    start: usize,
    budget: CoopBudget,
    pub(super) done: bool,
}

/// What a read of the log found.
enum Copied {
    /// A single short delta, which is not copied into the buffer.
    One(Text),
    Deltas,
    /// The end of the stream, and the error that it ends with, if any.
    End(Option<ChoiceError>),
}

impl TextCursor {
    pub(super) fn new(log: &ChoiceLog, guard: &Arc<CancelOnDrop>, kind: TextKind) -> Self {
        Self {
            log: Watcher::with_interest(interest_of(kind), log),
            _guard: Arc::clone(guard),
            kind,
            seq: 0,
            copied: String::new(),
            shared: None,
            ends: Ends::new(),
            next: 0,
            start: 0,
            budget: CoopBudget::default(),
            done: false,
        }
    }

    pub(super) fn poll_item(
        &mut self,
        cx: &Context<'_>,
    ) -> Poll<Option<Result<Text, ChoiceError>>> {
        if self.done {
            return Poll::Ready(None); // it costs no budget
        }
        if self.budget.exhausted(cx) {
            return Poll::Pending;
        }
        if self.next >= self.ends.len()
            && let Some(item) = ready!(self.poll_copy(cx))
        {
            return Poll::Ready(item);
        }
        let end = self.ends.get(self.next).copied().unwrap_or(self.start);
        let text = cut(&self.copied, &mut self.shared, self.start, end);
        self.start = end;
        self.next += 1;
        Poll::Ready(Some(Ok(text)))
    }

    /// As `poll_item`, but everything that has gathered is one item.
    fn poll_coalesced(&mut self, cx: &Context<'_>) -> Poll<Option<Result<Text, ChoiceError>>> {
        if self.next >= self.ends.len()
            && let Some(item) = ready!(self.poll_copy(cx))
        {
            return Poll::Ready(item);
        }
        self.next = self.ends.len();
        let rest = self.copied.get(self.start..).unwrap_or_default();
        Poll::Ready(Some(Ok(Text::from(rest))))
    }

    /// Copies the deltas that the log has. `Some` is the item of a single delta, or the end of the stream.
    fn poll_copy(&mut self, cx: &Context<'_>) -> Poll<Option<Option<Result<Text, ChoiceError>>>> {
        if self.done {
            return Poll::Ready(Some(None));
        }
        let Self {
            log,
            kind,
            seq,
            copied,
            ends,
            ..
        } = self;
        ends.clear();
        copied.clear();
        copied.shrink_to(KEPT_CAPACITY);
        let found = log.poll_read(cx, |state| read(state, *kind, seq, copied, ends));
        (self.next, self.start, self.shared) = (0, 0, None);
        match found {
            Poll::Pending => {
                self.budget.reset();
                Poll::Pending
            }
            Poll::Ready(Copied::One(text)) => Poll::Ready(Some(Some(Ok(text)))),
            Poll::Ready(Copied::Deltas) => Poll::Ready(None),
            Poll::Ready(Copied::End(error)) => {
                self.done = true;
                self.copied = String::new();
                Poll::Ready(Some(error.map(Err)))
            }
        }
    }
}

/// The part of a log whose changes concern a text.
fn interest_of(kind: TextKind) -> Interest {
    match kind {
        TextKind::Content | TextKind::Reasoning | TextKind::Refusal => Interest::TEXT,
        TextKind::Arguments(_) => Interest::CALLS,
    }
}

/// Cuts a delta out of a copied text. A long one is not copied again but shares one copy of the whole.
pub(super) fn cut(copied: &str, shared: &mut Option<Arc<str>>, start: usize, end: usize) -> Text {
    let text = copied.get(start..end).unwrap_or_default();
    Text::short(text).unwrap_or_else(|| {
        let shared = shared.get_or_insert_with(|| Arc::from(copied));
        Text::slice(shared, start, end)
    })
}

/// Copies the next deltas of a text, and where each of them ends.
pub(super) fn copy(
    state: &LogState,
    kind: TextKind,
    seq: &mut usize,
    ends: &mut Vec<usize>,
) -> String {
    let mut text = String::new();
    *seq = state
        .transcript
        .gather(kind, *seq, COPY_BYTES, &mut text, |end| ends.push(end));
    text
}

fn read(
    state: &LogState,
    kind: TextKind,
    seq: &mut usize,
    copied: &mut String,
    ends: &mut Ends,
) -> Read<Copied> {
    if let Some(text) = state.transcript.only_text(kind, *seq).and_then(Text::short) {
        *seq += 1;
        return state.read_until(*seq, Copied::One(text));
    }
    *seq = state
        .transcript
        .gather(kind, *seq, COPY_BYTES, copied, |end| ends.push(end));
    if copied.is_empty() {
        return state
            .stream_end()
            .map_or(Read::Pending, |error| Read::Partial(Copied::End(error)));
    }
    state.read_until(*seq, Copied::Deltas)
}

impl fmt::Debug for TextCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TextCursor")
            .field("kind", &self.kind)
            .field("seq", &self.seq)
            .field("done", &self.done)
            .finish_non_exhaustive()
    }
}

macro_rules! text_cursor {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        ///
        /// One item per wire delta, verbatim: equal deltas, white space and single characters are all returned. After the
        /// end the stream returns `None`, or first the error that cut the choice. A clone continues from the same position
        /// on its own. Dropping it cancels nothing while another handle lives.
        #[derive(Debug, Clone)]
        pub struct $name(pub(super) TextCursor);

        impl $name {
            fn poll_item(&mut self, cx: &Context<'_>) -> Poll<Option<Result<Text, ChoiceError>>> {
                self.0.poll_item(cx)
            }

            fn is_done(&self) -> bool {
                self.0.done
            }

            /// The same text, but everything that has gathered is one item: for consumers slower than the model.
            ///
            /// # Examples
            ///
            /// See [`Coalesced`].
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

/// The text that has gathered since the last item, at most 64 KiB and one delta at once; see [`Content::coalesced`].
///
/// # Examples
///
/// ```
/// # use futures::stream;
/// use unbraid::Completions;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let chunk = |text| format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n");
/// # let body = chunk("One ") + &chunk("at ") + &chunk("once.") + "data: [DONE]\n\n";
/// # let bytes = stream::iter([Ok::<_, std::io::Error>(body)]);
/// let choice = Completions::from_byte_stream(bytes).first().await?;
/// choice.finished().await?;
/// let mut text = choice.content().coalesced();
/// assert_eq!(text.next().await.unwrap()?, "One at once."); // three deltas
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Coalesced(TextCursor);

impl Coalesced {
    fn poll_item(&mut self, cx: &Context<'_>) -> Poll<Option<Result<Text, ChoiceError>>> {
        self.0.poll_coalesced(cx)
    }

    fn is_done(&self) -> bool {
        self.0.done
    }
}

cursor!(Coalesced, Text, ChoiceError);
