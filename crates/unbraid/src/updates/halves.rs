//! Joins characters that a server cut in two: the flat view's texts can be added up as they are (C14).
//!
//! A server that cuts UTF-16 sends one half of a character at the end of a delta and the other one at the start of the
//! next delta of the same text. The first half is held back until then. One that stays alone becomes U+FFFD, as it does
//! in a choice: where other text follows it, where the stream goes past its choice's finish reason, and at the end.

use std::{
    borrow::Cow,
    collections::{BTreeMap, VecDeque},
    pin::Pin,
    task::{Context, Poll, ready},
};

use futures::Stream;
use unbraid_core::{
    ChoiceIndex, CompletionKind, EventIndex, Fragment, StreamError, ToolCallUpdate, Update,
    Warning, limits::MAX_ENTRIES,
};

type Item = Result<Update<'static>, StreamError>;

/// The updates of a stream without halves of characters.
pub(super) struct WithoutHalves<S> {
    updates: S,
    halves: Halves,
    /// Updates that are joined and not yet given.
    ready: VecDeque<Item>,
    over: bool,
}

impl<S> WithoutHalves<S> {
    pub(super) fn new(updates: S) -> Self {
        Self {
            updates,
            halves: Halves::default(),
            ready: VecDeque::new(),
            over: false,
        }
    }
}

impl<S: Stream<Item = Item> + Unpin> Stream for WithoutHalves<S> {
    type Item = Item;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Item>> {
        let Self {
            updates,
            halves,
            ready,
            over,
        } = &mut *self;
        loop {
            if let Some(item) = ready.pop_front() {
                return Poll::Ready(Some(item));
            }
            if *over {
                return Poll::Ready(None);
            }
            match ready!(Pin::new(&mut *updates).poll_next(cx)) {
                Some(Ok(update)) if halves.concerns(&update) => halves.take(update, ready),
                Some(Ok(update)) => return Poll::Ready(Some(Ok(update))),
                Some(Err(error)) => {
                    halves.end(ready);
                    ready.push_back(Err(error));
                }
                None => {
                    halves.end(ready);
                    *over = true;
                }
            }
        }
    }
}

/// Which text of a choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Reasoning,
    Content,
    Refusal,
    Function,
    /// The arguments of a call, by its index on the wire, or else its position in the chunk.
    Call(Option<i64>),
}

/// First halves that wait for the second, at most [`MAX_ENTRIES`]; further ones do not wait.
#[derive(Debug, Default)]
struct Halves {
    held: BTreeMap<(ChoiceIndex, Kind), u16>,
    /// Choices of which a half is held although their finish reason has come, and the last event that brought a delta of
    /// each.
    finished: BTreeMap<ChoiceIndex, EventIndex>,
    /// The event of the last update.
    at: EventIndex,
    shape: CompletionKind,
}

impl Halves {
    /// Whether there is anything to do for an update. There hardly ever is.
    fn concerns(&self, update: &Update<'_>) -> bool {
        let cut = |piece: &Fragment<'_>| piece.low.is_some() || piece.high.is_some();
        let texts = [
            &update.reasoning,
            &update.content,
            &update.refusal,
            &update.function_arguments,
        ];
        let arguments = update.tool_calls.iter().map(|call| &call.arguments);
        let mut pieces = texts.into_iter().chain(arguments).flatten();
        !self.held.is_empty() || pieces.any(cut)
    }

    fn take(&mut self, mut update: Update<'static>, ready: &mut VecDeque<Item>) {
        self.at = update.event_index;
        if update.done {
            self.end(ready);
        }
        if let Some(choice) = update.choice {
            self.shape = update.kind;
            self.join_texts(choice, &mut update);
            let known = self.finished.contains_key(&choice) && brings_delta(&update);
            if known || (update.finish_reason.is_some() && self.holds(choice)) {
                self.finished.insert(choice, update.event_index);
            }
        }
        if update.last_of_event {
            self.end_of_event(ready);
        }
        ready.push_back(Ok(update));
    }

    fn join_texts(&mut self, choice: ChoiceIndex, update: &mut Update<'static>) {
        let mut lone = false;
        let whole = update.is_full_message; // it continues no delta, nor does any continue it
        let texts = [
            (Kind::Reasoning, &mut update.reasoning),
            (Kind::Content, &mut update.content),
            (Kind::Refusal, &mut update.refusal),
            (Kind::Function, &mut update.function_arguments),
        ];
        for (kind, piece) in texts {
            if let Some(piece) = piece {
                lone |= self.join((choice, kind), piece, whole);
            }
        }
        for call in &mut update.tool_calls {
            let key = call.wire_index.or_else(|| call.position.map(i64::from));
            if let Some(piece) = &mut call.arguments {
                let kind = self.call_of(choice, key, piece);
                lone |= self.join((choice, kind), piece, whole);
            }
        }
        if lone {
            update.warnings.push(lone_half(choice, update.event_index));
        }
    }

    /// The call that a piece of arguments continues. Without an index it is the latest; and a call whose header had none
    /// may get one later (T2).
    fn call_of(&self, choice: ChoiceIndex, key: Option<i64>, piece: &Fragment<'_>) -> Kind {
        let own = Kind::Call(key);
        if piece.low.is_none() || self.held.contains_key(&(choice, own)) {
            return own;
        }
        let (first, last) = (
            Kind::Call(None),
            Kind::Call(key.is_none().then_some(i64::MAX)),
        );
        let mut held = self.held.range((choice, first)..=(choice, last));
        held.next_back().map_or(own, |((_, kind), _)| *kind)
    }

    /// Completes a piece by the half that waits for it, and holds back the half that it ends with; true if a half found no
    /// partner.
    fn join(&mut self, key: (ChoiceIndex, Kind), piece: &mut Fragment<'_>, whole: bool) -> bool {
        if piece.is_empty() {
            return false;
        }
        let waiting = if whole { None } else { self.held.remove(&key) };
        let mut lone = false;
        let units = waiting.into_iter().chain(piece.low.take());
        let mut text: String = char::decode_utf16(units)
            .map(|unit| {
                lone |= unit.is_err();
                unit.unwrap_or(char::REPLACEMENT_CHARACTER)
            })
            .collect();
        if !text.is_empty() {
            text.push_str(&piece.text);
            piece.text = Cow::Owned(text);
        }
        if let Some(high) = piece.high.take() {
            if whole || self.held.len() >= MAX_ENTRIES {
                lone = true;
                piece.text.to_mut().push(char::REPLACEMENT_CHARACTER);
            } else {
                self.held.insert(key, high);
            }
        }
        lone
    }

    fn holds(&self, choice: ChoiceIndex) -> bool {
        let all = (choice, Kind::Reasoning)..=(choice, Kind::Call(Some(i64::MAX)));
        self.held.range(all).next().is_some()
    }

    /// A finished choice ends with the first event that brings nothing more for it, and so do its halves.
    fn end_of_event(&mut self, ready: &mut VecDeque<Item>) {
        let past = |(choice, at): (&ChoiceIndex, &EventIndex)| (*at < self.at).then_some(*choice);
        let ended: Vec<ChoiceIndex> = self.finished.iter().filter_map(past).collect();
        for choice in ended {
            self.end_of_choice(choice, ready);
        }
    }

    fn end(&mut self, ready: &mut VecDeque<Item>) {
        while let Some((choice, _)) = self.held.keys().next() {
            self.end_of_choice(*choice, ready);
        }
        self.finished.clear();
    }

    /// Gives the halves of a choice that nothing will complete, in one update of their own.
    fn end_of_choice(&mut self, choice: ChoiceIndex, ready: &mut VecDeque<Item>) {
        self.finished.remove(&choice);
        let all = (choice, Kind::Reasoning)..=(choice, Kind::Call(Some(i64::MAX)));
        let kinds: Vec<Kind> = self.held.range(all).map(|((_, kind), _)| *kind).collect();
        if kinds.is_empty() {
            return;
        }
        let mut update = Update::default()
            .with_event_index(self.at)
            .with_choice(choice)
            .with_kind(self.shape)
            .with_is_chunk(true)
            .with_warnings(vec![lone_half(choice, self.at)]);
        for kind in kinds {
            self.held.remove(&(choice, kind));
            let lone = Fragment::from("\u{FFFD}");
            match kind {
                Kind::Reasoning => update.reasoning = Some(lone),
                Kind::Content => update.content = Some(lone),
                Kind::Refusal => update.refusal = Some(lone),
                Kind::Function => update.function_arguments = Some(lone),
                Kind::Call(index) => update.tool_calls.push(
                    ToolCallUpdate::default()
                        .with_wire_index(index)
                        .with_arguments(lone),
                ),
            }
        }
        ready.push_back(Ok(update));
    }
}

fn brings_delta(update: &Update<'_>) -> bool {
    let texts = [
        &update.reasoning,
        &update.content,
        &update.refusal,
        &update.function_arguments,
    ];
    !update.tool_calls.is_empty() || texts.into_iter().flatten().any(|piece| !piece.is_empty())
}

fn lone_half(choice: ChoiceIndex, at: EventIndex) -> Warning {
    Warning::new("C14", at, "half a surrogate pair was replaced").with_choice(choice)
}
