//! Joins characters that a server cut in two, so that the texts of the flat view can be concatenated as they are (C14).
//!
//! A server that cuts UTF-16 sends one half of a surrogate pair at the end of a delta and the other half at the start of the
//! next delta of the same text. The high half is held back until then. A half that stays alone becomes U+FFFD, as in a
//! choice: when other text follows it, when the stream goes past its choice's finish reason, and at the end.

use std::{
    borrow::Cow,
    collections::{BTreeMap, VecDeque},
    pin::Pin,
    task::{Context, Poll, ready},
};

use futures::Stream;
use unbraid_core::{
    ChoiceIndex, CompletionKind, EventIndex, Fragment, StreamError, ToolCallUpdate, Update,
    Warning,
    internal::{LONE_HALF, is_audio, is_doubtful, join_transcript, without_halves},
    limits::MAX_ENTRIES,
};

type Item = Result<Update<'static>, StreamError>;

/// The updates of a stream with their surrogate pairs joined.
pub(super) struct JoinedSurrogates<S> {
    updates: S,
    joiner: SurrogateJoiner,
    /// Updates that are joined and not yet returned.
    ready: VecDeque<Item>,
    done: bool,
}

impl<S> JoinedSurrogates<S> {
    pub(super) fn new(updates: S) -> Self {
        Self {
            updates,
            joiner: SurrogateJoiner::default(),
            ready: VecDeque::new(),
            done: false,
        }
    }
}

impl<S: Stream<Item = Item> + Unpin> Stream for JoinedSurrogates<S> {
    type Item = Item;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Item>> {
        let Self {
            updates,
            joiner,
            ready,
            done,
        } = &mut *self;
        loop {
            if let Some(item) = ready.pop_front() {
                return Poll::Ready(Some(item));
            }
            if *done {
                return Poll::Ready(None);
            }
            match ready!(Pin::new(&mut *updates).poll_next(cx)) {
                Some(Ok(update)) if joiner.affects(&update) => joiner.push(update, ready),
                Some(Ok(update)) => return Poll::Ready(Some(Ok(update))),
                Some(Err(error)) => {
                    joiner.finish(ready);
                    ready.push_back(Err(error));
                }
                None => {
                    joiner.finish(ready);
                    *done = true;
                }
            }
        }
    }
}

/// A text of a choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum TextId {
    Reasoning,
    Content,
    Refusal,
    /// The transcript of the audio.
    Audio,
    Function,
    /// The arguments of a call, by its index on the wire or else its position in the chunk.
    Call(Option<i64>),
}

/// High halves that wait for their low half, at most [`MAX_ENTRIES`]; further ones are replaced at once.
#[derive(Debug, Default)]
struct SurrogateJoiner {
    held: BTreeMap<(ChoiceIndex, TextId), u16>,
    /// The choices of which a half is held although their finish reason has arrived, and the last event that brought a delta
    /// of each.
    finished: BTreeMap<ChoiceIndex, EventIndex>,
    /// The event of the last update.
    event_index: EventIndex,
    kind: CompletionKind,
}

impl SurrogateJoiner {
    /// Whether there is anything to do for an update, which is rare.
    fn affects(&self, update: &Update<'_>) -> bool {
        let is_cut = |fragment: &Fragment<'_>| fragment.low.is_some() || fragment.high.is_some();
        let texts = [
            &update.reasoning,
            &update.content,
            &update.refusal,
            &update.function_name,
            &update.function_arguments,
        ];
        let calls = update.tool_calls.iter();
        let calls = calls.flat_map(|call| [&call.name, &call.arguments]);
        let mut fragments = texts.into_iter().chain(calls).flatten();
        !self.held.is_empty() || fragments.any(is_cut) || audio(update).any(is_doubtful)
    }

    fn push(&mut self, mut update: Update<'static>, ready: &mut VecDeque<Item>) {
        self.event_index = update.event_index;
        if update.done {
            self.finish(ready);
        }
        if let Some(choice) = update.choice {
            self.kind = update.kind;
            self.join_texts(choice, &mut update);
            let continues = self.finished.contains_key(&choice) && brings_delta(&update);
            if continues || (update.finish_reason.is_some() && self.holds(choice)) {
                self.finished.insert(choice, update.event_index);
            }
        }
        if update.last_of_event {
            self.finish_event(ready);
        }
        ready.push_back(Ok(update));
    }

    fn join_texts(&mut self, choice: ChoiceIndex, update: &mut Update<'static>) {
        let mut lone = self.join_audio(choice, update);
        // A choice compares messages in place of deltas with one another (E21), so it has to see the halves between them.
        if !update.is_full_message {
            lone |= self.join_fragments(choice, update);
        }
        if lone {
            update.warnings.push(lone_half(choice, update.event_index));
        }
    }

    /// Joins the texts and arguments of a delta; true if a half has no partner.
    fn join_fragments(&mut self, choice: ChoiceIndex, update: &mut Update<'static>) -> bool {
        let mut lone = false;
        let texts = [
            (TextId::Reasoning, &mut update.reasoning),
            (TextId::Content, &mut update.content),
            (TextId::Refusal, &mut update.refusal),
            (TextId::Function, &mut update.function_arguments),
        ];
        for (text, fragment) in texts {
            if let Some(fragment) = fragment {
                lone |= self.join((choice, text), fragment, false);
            }
        }
        // A name is joined nowhere, so that no half of it waits.
        let names = update.tool_calls.iter_mut().map(|call| &mut call.name);
        for name in names.chain([&mut update.function_name]).flatten() {
            lone |= self.join((choice, TextId::Function), name, true);
        }
        for call in &mut update.tool_calls {
            let key = call.wire_index.or_else(|| call.position.map(i64::from));
            if let Some(fragment) = &mut call.arguments {
                let text = self.call_of(choice, key, fragment);
                lone |= self.join((choice, text), fragment, false);
            }
        }
        lone
    }

    /// Joins the transcripts of audio, which are inside of raw JSON, where no half may stay; true if a half has no partner.
    fn join_audio(&mut self, choice: ChoiceIndex, update: &mut Update<'static>) -> bool {
        let mut lone = false;
        let fields = update.metadata.iter_mut().take(update.delta_field_count);
        for (_, raw) in fields.filter(|(key, raw)| is_audio(key, raw)) {
            let key = (choice, TextId::Audio);
            let mut waiting = self.held.remove(&key);
            let is_full = waiting.is_none() && self.held.len() >= MAX_ENTRIES;
            let (joined, is_lone) = match is_full || update.is_full_message {
                true => {
                    let whole = without_halves(raw);
                    let is_lone = whole != *raw;
                    (whole, is_lone)
                }
                false => join_transcript(raw, &mut waiting),
            };
            lone |= is_lone;
            if let Cow::Owned(joined) = joined {
                *raw = Cow::Owned(joined);
            }
            if let Some(high) = waiting {
                self.held.insert(key, high);
            }
        }
        lone
    }

    /// The call that a fragment of arguments continues. Without an index it is the latest call. A call whose header had no
    /// index may get one later (T2).
    fn call_of(&self, choice: ChoiceIndex, key: Option<i64>, fragment: &Fragment<'_>) -> TextId {
        let own = TextId::Call(key);
        if fragment.low.is_none() || self.held.contains_key(&(choice, own)) {
            return own;
        }
        let (first, last) = (
            TextId::Call(None),
            TextId::Call(key.is_none().then_some(i64::MAX)),
        );
        let mut held = self.held.range((choice, first)..=(choice, last));
        held.next_back().map_or(own, |((_, text), _)| *text)
    }

    /// Completes a fragment by the half that waits for it, and holds back the half that it ends with, unless it is a name.
    /// Returns true if a half has no partner.
    fn join(
        &mut self,
        key: (ChoiceIndex, TextId),
        fragment: &mut Fragment<'_>,
        is_name: bool,
    ) -> bool {
        if fragment.is_empty() {
            return false;
        }
        let waiting = (!is_name).then(|| self.held.remove(&key)).flatten();
        let mut lone = false;
        let units = waiting.into_iter().chain(fragment.low.take());
        let mut text: String = char::decode_utf16(units)
            .map(|unit| {
                lone |= unit.is_err();
                unit.unwrap_or(char::REPLACEMENT_CHARACTER)
            })
            .collect();
        if !text.is_empty() {
            text.push_str(&fragment.text);
            fragment.text = Cow::Owned(text);
        }
        if let Some(high) = fragment.high.take() {
            if is_name || self.held.len() >= MAX_ENTRIES {
                lone = true;
                fragment.text.to_mut().push(char::REPLACEMENT_CHARACTER);
            } else {
                self.held.insert(key, high);
            }
        }
        lone
    }

    fn holds(&self, choice: ChoiceIndex) -> bool {
        let all = (choice, TextId::Reasoning)..=(choice, TextId::Call(Some(i64::MAX)));
        self.held.range(all).next().is_some()
    }

    /// A finished choice ends with the first event that brings nothing more for it, and its halves end with it.
    fn finish_event(&mut self, ready: &mut VecDeque<Item>) {
        let is_past = |(choice, last): (&ChoiceIndex, &EventIndex)| {
            (*last < self.event_index).then_some(*choice)
        };
        let ended: Vec<ChoiceIndex> = self.finished.iter().filter_map(is_past).collect();
        for choice in ended {
            self.finish_choice(choice, ready);
        }
    }

    fn finish(&mut self, ready: &mut VecDeque<Item>) {
        while let Some((choice, _)) = self.held.keys().next() {
            self.finish_choice(*choice, ready);
        }
        self.finished.clear();
    }

    /// Replaces the halves of a choice that nothing will complete, in one update of their own.
    fn finish_choice(&mut self, choice: ChoiceIndex, ready: &mut VecDeque<Item>) {
        self.finished.remove(&choice);
        let all = (choice, TextId::Reasoning)..=(choice, TextId::Call(Some(i64::MAX)));
        let texts: Vec<TextId> = self.held.range(all).map(|((_, text), _)| *text).collect();
        if texts.is_empty() {
            return;
        }
        let mut update = Update::default()
            .with_event_index(self.event_index)
            .with_choice(choice)
            .with_kind(self.kind)
            .with_is_chunk(true)
            .with_warnings(vec![lone_half(choice, self.event_index)]);
        for text in texts {
            self.held.remove(&(choice, text));
            let lone = Fragment::from("\u{FFFD}");
            match text {
                TextId::Reasoning => update.reasoning = Some(lone),
                TextId::Content => update.content = Some(lone),
                TextId::Refusal => update.refusal = Some(lone),
                TextId::Audio => {
                    update.metadata.push(("audio".into(), LONE_HALF.into()));
                    update.delta_field_count = 1;
                }
                TextId::Function => update.function_arguments = Some(lone),
                TextId::Call(wire_index) => update.tool_calls.push(
                    ToolCallUpdate::default()
                        .with_wire_index(wire_index)
                        .with_arguments(lone),
                ),
            }
        }
        ready.push_back(Ok(update));
    }
}

/// The pieces of audio in an update, as raw JSON.
fn audio<'u>(update: &'u Update<'_>) -> impl Iterator<Item = &'u str> {
    let fields = update.metadata.iter().take(update.delta_field_count);
    let pieces = fields.filter(|(key, raw)| is_audio(key, raw));
    pieces.map(|(_, raw)| &**raw)
}

fn brings_delta(update: &Update<'_>) -> bool {
    let texts = [
        &update.reasoning,
        &update.content,
        &update.refusal,
        &update.function_arguments,
    ];
    !update.tool_calls.is_empty()
        || audio(update).next().is_some()
        || texts
            .into_iter()
            .flatten()
            .any(|fragment| !fragment.is_empty())
}

fn lone_half(choice: ChoiceIndex, event_index: EventIndex) -> Warning {
    Warning::new("C14", event_index, "half a surrogate pair was replaced").with_choice(choice)
}
