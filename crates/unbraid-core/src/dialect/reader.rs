//! What a dialect without `choices` implements: one value of the stream in, updates out.

use std::borrow::Cow;

pub(crate) use super::{lane::Lane, wire_event::WireEvent};

use super::{
    continuation::{Continuation, Place},
    fault::is_error,
};
use crate::{
    ChoiceIndex, FinishReason, Fragment, ToolCallUpdate, Update,
    depth::is_deeper_than,
    limits::{MAX_CHOICES, MAX_ENTRIES, MAX_JSON_DEPTH},
    node::{Node, compact},
};

/// Reads the values of one stream in one dialect.
///
/// A reader keeps what later values refer to: open blocks, calls, and what is reported only at the end. All of it is bounded.
pub(crate) trait DialectReader: Send {
    /// Reads a value; false if it is not one of this dialect (D06).
    fn read<'a>(&mut self, event: &WireEvent<'_, 'a>, output: &mut Output<'a>) -> bool;

    /// Whether a value is an error of the stream.
    fn is_error(&self, event: &WireEvent<'_, '_>) -> bool {
        is_error(event)
    }

    /// What a value continues, if it continued one text and did nothing else when it was read. Values that differ from it only
    /// in the parts that are named may then be passed to [`continues`](Self::continues).
    fn continuation<'n, 'a>(&self, _event: &WireEvent<'n, 'a>) -> Option<Continuation<'n, 'a>> {
        None
    }

    /// Takes the text of such a value, as [`read`](Self::read) would. False if the value would do anything else now, so that
    /// it has to be read: then nothing has changed.
    fn continues(&mut self, _place: Place, _choice: u32, _text: &str) -> bool {
        false
    }

    /// A value without content arrived: a ping.
    fn keep_alive(&mut self, _output: &mut Output<'_>) {}

    /// The end of the stream cut another value, which is lost (S21).
    fn cut(&mut self) {}

    /// Nothing that follows of this choice counts: reports the entries that only waited for a later value of them.
    fn flush(&mut self, _choice: u32, _output: &mut Output<'_>) {}

    /// Nothing follows: reports everything that was held back. A second call reports nothing.
    ///
    /// The answer is complete if the body or its end mark was reached, and not if an error follows or the connection was lost.
    fn finish(&mut self, _is_complete: bool, _output: &mut Output<'_>) {}
}

/// The updates of one value, in their order.
#[derive(Default)]
pub(crate) struct Output<'a> {
    /// Nearly every value gives one update, which needs no allocation.
    first: Option<Update<'a>>,
    rest: Vec<Update<'a>>,
    /// The finish reasons and the usage that come after the limit on updates.
    ends: Vec<Update<'a>>,
    /// Takes what else exceeds the limit.
    excess: Option<Update<'a>>,
    /// The code and the message of each deviation.
    pub(crate) warnings: Vec<(&'static str, &'static str)>,
    /// Why the stream ends with an error, if it does.
    pub(crate) malformed: Option<&'static str>,
}

impl<'a> Output<'a> {
    /// Starts the next update of a choice.
    pub(crate) fn choice(&mut self, index: u32) -> &mut Update<'a> {
        let update = self.stream();
        update.choice = Some(ChoiceIndex(index));
        update
    }

    /// Starts the next update of the stream itself.
    pub(crate) fn stream(&mut self) -> &mut Update<'a> {
        let update = Update {
            is_chunk: true,
            ..Update::default()
        };
        if self.first.is_none() {
            return self.first.insert(update);
        }
        if self.is_full() {
            return self.excess.insert(update);
        }
        self.rest.push(update);
        match self.rest.last_mut() {
            Some(update) => update,
            None => self.excess.get_or_insert_default(),
        }
    }

    /// Starts an update that says how a choice or the answer has ended. What exceeds the limit is skipped, but not that.
    fn end(&mut self) -> &mut Update<'a> {
        if !self.is_full() || self.ends.len() >= MAX_CHOICES {
            return self.stream();
        }
        self.ends.push(Update {
            is_chunk: true,
            ..Update::default()
        });
        match self.ends.last_mut() {
            Some(end) => end,
            None => self.excess.get_or_insert_default(),
        }
    }

    /// Whether there is one update more than the limit of an event, so that the excess is noticed and warned about there.
    fn is_full(&self) -> bool {
        self.rest.len() > 2 * MAX_ENTRIES
    }

    /// The first update of the value, which has its id, model and time.
    pub(crate) fn first(&mut self) -> &mut Update<'a> {
        if self.first.is_none() {
            return self.stream();
        }
        self.first.get_or_insert_default()
    }

    /// The first choice of the value's updates.
    pub(crate) fn choice_index(&self) -> Option<u32> {
        let mut updates = self.first.iter().chain(&self.rest);
        updates.find_map(|update| Some(update.choice?.0))
    }

    /// The latest update of a choice, or a new one.
    pub(crate) fn latest_of_choice(&mut self, index: u32) -> &mut Update<'a> {
        let is_of_choice = |update: &Update<'_>| update.choice == Some(ChoiceIndex(index));
        let Some(position) = self.rest.iter().rposition(is_of_choice) else {
            return match self.first.as_ref().is_some_and(is_of_choice) {
                true => self.first(),
                false => self.choice(index),
            };
        };
        match self.rest.get_mut(position) {
            Some(update) => update,
            None => self.excess.get_or_insert_default(),
        }
    }

    /// Continues a text of a choice, unless the fragment is empty.
    pub(crate) fn text(&mut self, index: u32, lane: Lane, fragment: Option<Fragment<'a>>) {
        let Some(fragment) = fragment.filter(|fragment| !fragment.is_empty()) else {
            return;
        };
        let update = self.choice(index);
        match lane {
            Lane::Content => update.content = Some(fragment),
            Lane::Reasoning => update.reasoning = Some(fragment),
            Lane::Refusal => update.refusal = Some(fragment),
        }
    }

    /// Adds a piece of a call.
    pub(crate) fn call(&mut self, index: u32, call: ToolCallUpdate<'a>) {
        self.choice(index).tool_calls.push(call);
    }

    /// Appends a piece to the arguments of a call, unless it is empty.
    pub(crate) fn arguments(&mut self, index: u32, ordinal: i64, fragment: Option<Fragment<'a>>) {
        if let Some(fragment) = fragment.filter(|fragment| !fragment.is_empty()) {
            let call = ToolCallUpdate::default().with_wire_index(ordinal);
            self.call(index, call.with_arguments(fragment));
        }
    }

    /// Adds an entry to one of the message's lists: the provider's own object.
    pub(crate) fn entry(&mut self, index: u32, list: &'static str, raw: &str) {
        /// What the response adds around an entry.
        const LEVELS: usize = 8;
        if is_deeper_than(raw, MAX_JSON_DEPTH - LEVELS) {
            return self.warn("D16", "an entry that is nested too deep was skipped");
        }
        self.message_field(index, list, format!("[{raw}]"));
    }

    /// Sets a field of the message.
    pub(crate) fn message_field(
        &mut self,
        index: u32,
        key: impl Into<Cow<'a, str>>,
        raw: impl Into<Cow<'a, str>>,
    ) {
        let update = self.choice(index);
        update.metadata.push((key.into(), raw.into()));
        update.delta_field_count = 1;
    }

    /// Sets fields of the stream itself.
    pub(crate) fn stream_fields(
        &mut self,
        fields: impl IntoIterator<Item = (Cow<'a, str>, Cow<'a, str>)>,
    ) {
        let mut fields = fields.into_iter().peekable();
        if fields.peek().is_some() {
            self.stream().metadata.extend(fields);
        }
    }

    /// Sets a field of the choice, unless it is null.
    #[expect(clippy::ptr_arg, reason = "the key is kept, and most keys borrow")]
    pub(crate) fn choice_field(&mut self, index: u32, key: &Cow<'a, str>, node: &Node<'a>) {
        if !node.is_null() {
            let field = (key.clone(), raw(node));
            self.choice(index).metadata.push(field);
        }
    }

    /// Reports usage, if it is an object.
    pub(crate) fn usage(&mut self, node: Option<&Node<'a>>) {
        if let Some(node) = node.filter(|node| node.as_object().is_some()) {
            self.end().usage = Some(raw(node));
        }
    }

    /// Reports the finish reason of a choice.
    pub(crate) fn finish_reason(&mut self, index: u32, reason: impl Into<Cow<'a, str>>) {
        let update = self.end();
        update.choice = Some(ChoiceIndex(index));
        update.finish_reason = Some(reason.into());
    }

    /// Reports the end mark of the stream.
    pub(crate) fn done(&mut self) {
        self.stream().done = true;
    }

    /// Notes a deviation that was tolerated.
    pub(crate) fn warn(&mut self, code: &'static str, message: &'static str) {
        self.warnings.push((code, message));
    }

    /// The message was started again before anything else of it arrived, or with the same id (A11).
    pub(crate) fn second_start(&mut self) {
        self.warn(
            "A11",
            "the message was started twice; the first start counts",
        );
    }

    /// Another message begins: a retry that was spliced into the stream is another answer (A11).
    pub(crate) fn second_message(&mut self) {
        self.malformed = Some("a second message begins inside the first one");
    }

    /// Adds the updates of a value inside this one.
    pub(crate) fn absorb(&mut self, inner: Output<'_>) {
        self.warnings.extend_from_slice(&inner.warnings);
        self.malformed = self.malformed.or(inner.malformed);
        for update in inner.into_updates() {
            *self.stream() = update.into_owned();
        }
    }

    /// The updates, if there are one to three and no deviation.
    pub(crate) fn few_updates(&self) -> Option<Vec<&Update<'a>>> {
        let is_clean = self.warnings.is_empty() && self.malformed.is_none() && self.rest.len() < 3;
        let first = self.first.as_ref().filter(|_| is_clean)?;
        Some([first].into_iter().chain(&self.rest).collect())
    }

    /// The updates in their order, with what exceeds the limit as one more.
    pub(crate) fn into_updates(self) -> impl Iterator<Item = Update<'a>> {
        let updates = self.first.into_iter().chain(self.rest);
        updates.chain(self.ends).chain(self.excess)
    }
}

/// A value's JSON without white space.
pub(crate) fn raw<'a>(node: &Node<'a>) -> Cow<'a, str> {
    match node.to_json() {
        Cow::Borrowed(json) => compact(json),
        Cow::Owned(json) => Cow::Owned(compact(&json).into_owned()),
    }
}

/// A finish reason: text as it is, any other value as its JSON (F13). Null, empty text, `{}` and `[]` are none (F1).
pub(crate) fn reason_of<'a>(node: Option<&Node<'a>>) -> Option<Cow<'a, str>> {
    let node = node.filter(|node| !node.is_null())?;
    match node.text() {
        Some(text) => Some(text).filter(|text| !text.is_empty()),
        None => Some(raw(node)).filter(|raw| !matches!(&**raw, "{}" | "[]")),
    }
}

/// Whether a finish reason says that the answer was cut, so that arguments which are missing did not arrive (D14).
pub(crate) fn is_cut(reason: &str) -> bool {
    FinishReason::from(reason).class().is_cut()
}

/// The text of a field, unless it is empty.
pub(crate) fn text<'a>(node: &Node<'a>, key: &str) -> Option<Cow<'a, str>> {
    node.get(key)?.text().filter(|text| !text.is_empty())
}

/// The text of a field as a fragment.
pub(crate) fn fragment<'a>(node: &Node<'a>, key: &str) -> Option<Fragment<'a>> {
    node.get(key)?.fragment()
}

/// The text of a part, in whose place some gateways write the text alone (C11).
pub(crate) fn text_of_part<'a>(part: &Node<'a>) -> Option<Fragment<'a>> {
    part.fragment().or_else(|| fragment(part, "text"))
}

/// The entries of a list, or one entry in place of a list.
pub(crate) fn entries<'n, 'a>(node: Option<&'n Node<'a>>) -> &'n [Node<'a>] {
    match node {
        Some(node) if node.as_object().is_some() => std::slice::from_ref(node),
        Some(node) => node.as_array().unwrap_or_default(),
        None => &[],
    }
}

/// The arguments of a call as JSON text: text as it is, an object without its white space (D14). None for no arguments, and
/// for an empty object, which may be a placeholder.
pub(crate) fn arguments_of<'a>(node: Option<&Node<'a>>) -> Option<Fragment<'a>> {
    let node = node.filter(|node| !node.is_null())?;
    if node.as_object().is_some_and(<[_]>::is_empty) {
        return None;
    }
    match node.fragment() {
        Some(fragment) => Some(fragment).filter(|fragment| !fragment.is_empty()),
        None => Some(Fragment::from(raw(node))),
    }
}

/// The fields of an object that are neither null nor among `known`, for the extra fields of a call.
pub(crate) fn other_fields<'a>(
    node: &Node<'a>,
    known: &[&str],
) -> Vec<(Cow<'a, str>, Cow<'a, str>)> {
    let fields = node.as_object().unwrap_or_default().iter();
    fields
        .filter(|(key, value)| !value.is_null() && !known.contains(&&**key))
        .map(|(key, value)| (key.clone(), raw(value)))
        .collect()
}

#[cfg(test)]
mod tests {
    use crate::{ChoiceIndex, Config, Demux};

    /// The finish reason of a stream with this line.
    fn read_reason(line: &str) -> Option<String> {
        let mut demux = Demux::new(Config::default());
        demux.feed(line.as_bytes());
        demux.finish();
        let choice = demux.choice(ChoiceIndex(0)).unwrap();
        choice
            .finish_reason()
            .map(|reason| reason.as_str().to_owned())
    }

    #[test]
    fn f01_f13_empty_objects_and_lists_are_no_reasons() {
        let ollama = |reason: &str| {
            format!(
                "{{\"model\":\"m\",\"created_at\":\"2026-11-20T10:00:00Z\",\"message\":{{\"role\":\"assistant\",\"content\":\"a\"}},\"done\":true,\"done_reason\":{reason}}}\n"
            )
        };
        let bedrock = |reason: &str| {
            format!(
                "{{\"messageStart\":{{\"role\":\"assistant\"}}}}\n{{\"messageStop\":{{\"stopReason\":{reason}}}}}\n"
            )
        };
        let body = |reason: &str| {
            format!(
                "{{\"output\":{{\"message\":{{\"role\":\"assistant\",\"content\":[]}}}},\"stopReason\":{reason}}}"
            )
        };
        let chat = |reason: &str| {
            format!(
                "{{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"a\"}},\"finish_reason\":{reason}}}]}}\n"
            )
        };
        for empty in ["{}", "[]", "{ }", "[ ]", "null", "\"\""] {
            let lines = [ollama(empty), bedrock(empty), body(empty), chat(empty)];
            assert_eq!(
                lines.map(|line| read_reason(&line)),
                [const { None }; 4],
                "{empty}"
            );
        }
        let other = "{\"type\":\"stop\"}";
        let lines = [ollama(other), bedrock(other), body(other), chat(other)];
        for line in lines {
            assert_eq!(read_reason(&line).as_deref(), Some(other), "{line}");
        }
    }
}
