//! `/v2/chat` of Cohere: contents, calls and citations, each with an index of their own.

use super::{
    calls::{Call, Calls},
    fault::reported,
    object::Object,
    reader::{
        DialectReader, Lane, Output, WireEvent, arguments_of, entries, fragment, other_fields, raw,
        reason_of, text, text_of_part,
    },
};
use crate::{
    Fragment, ToolCallUpdate,
    chunk::CONTENT_PARTS,
    limits::{MAX_ENTRIES, MAX_EVENT_BYTES, MAX_NAME_BYTES},
    node::Node,
};

/// The only choice of a message.
const CHOICE: u32 = 0;

/// The state of one message.
#[derive(Default)]
pub(crate) struct Cohere {
    has_started: bool,
    /// Whether the start of the message was read, and its id.
    has_head: bool,
    id: Option<String>,
    /// Whether anything of the message has arrived, so that another start is not a repetition (A11).
    has_content: bool,
    calls: Calls,
    /// The calls by their index, which contents do not share (H02).
    open: Vec<(i64, Call)>,
    /// The plan, which a request sends back in place of the content (H04).
    plan: Object,
    /// The halves of characters with which the plan, the thinking and the text of the log probabilities end so far. The first two
    /// have one lane, but are two texts.
    halves: Halves,
}

#[derive(Default)]
struct Halves {
    plan: Option<u16>,
    thinking: Option<u16>,
    logprobs: Option<u16>,
}

impl DialectReader for Cohere {
    fn read<'a>(&mut self, event: &WireEvent<'_, 'a>, output: &mut Output<'a>) -> bool {
        let node = event.node;
        let kind = event.kind();
        let kind = kind.as_deref().unwrap_or_default();
        let delta = node.get("delta");
        let message = delta.and_then(|delta| delta.get("message"));
        match (kind, message) {
            ("message-start", message) => self.message_start(node, message, output),
            ("content-start" | "content-delta", Some(message)) => {
                self.ensure_started(output);
                self.contents(message, output);
                self.logprobs(node, output);
            }
            ("tool-plan-delta", Some(message)) => {
                self.ensure_started(output);
                self.plan(fragment(message, "tool_plan"), output);
            }
            ("tool-call-start", Some(message)) => {
                self.ensure_started(output);
                for call in entries(message.get("tool_calls")) {
                    if !self.call_restart(index(node), call, output) {
                        self.call_start(index(node), call, output);
                    }
                }
            }
            ("tool-call-delta", Some(message)) => {
                self.ensure_started(output);
                for call in entries(message.get("tool_calls")) {
                    self.call_delta(index(node), call, output);
                }
            }
            ("citation-start", Some(message)) => {
                self.ensure_started(output);
                for citation in entries(message.get("citations")) {
                    output.entry(CHOICE, "annotations", &raw(citation));
                }
            }
            ("tool-call-end", _) => self.flush_call(index(node), output),
            ("content-end" | "citation-end" | "debug", _) => {}
            ("content-start" | "content-delta" | "tool-plan-delta", None)
            | ("tool-call-start" | "tool-call-delta" | "citation-start", None) => {}
            ("message-end", _) => {
                self.ensure_started(output);
                self.end_fields(node, delta, output);
                self.end(delta.unwrap_or(node), output);
            }
            _ => return self.other(node, output),
        }
        true
    }

    fn is_error(&self, event: &WireEvent<'_, '_>) -> bool {
        // A body has the error of its answer beside the reason (H06).
        let message = event.node.get("message").and_then(Node::as_object);
        if message.is_some() && event.node.get("finish_reason").is_some() {
            return false;
        }
        // An error in mid-stream is only a message (H10).
        let text = |key: &str| event.node.get(key).and_then(Node::as_str);
        let has_message = text("message").is_some_and(|message| !message.is_empty());
        super::fault::is_error(event) || (text("type").is_none() && has_message)
    }

    fn flush(&mut self, _: u32, output: &mut Output<'_>) {
        self.flush_calls(output);
        self.report_plan(output);
    }

    fn finish(&mut self, _: bool, output: &mut Output<'_>) {
        self.flush(CHOICE, output);
    }
}

impl Cohere {
    /// Reads the body of an answer that is not streamed; false for any other value.
    fn other<'a>(&mut self, node: &Node<'a>, output: &mut Output<'a>) -> bool {
        // Once the message has started, only a reason shows that a value is a body and not one of another dialect (D06).
        let has_reason = node.get("finish_reason").and_then(Node::as_str).is_some();
        let is_body = has_reason || !self.has_started;
        if let Some(message) = node
            .get("message")
            .filter(|node| is_body && node.as_object().is_some())
        {
            self.start(text(node, "id"), Some(message), output);
            self.message(message, output);
            self.logprobs(node, output);
            self.end_fields(node, None, output);
            self.end(node, output);
            return true;
        }
        let is_unknown = node.get("type").is_some() && self.has_started;
        if is_unknown {
            super::keep_unknown(CHOICE, node, output);
        }
        is_unknown
    }

    fn message_start<'a>(
        &mut self,
        node: &Node<'a>,
        message: Option<&Node<'a>>,
        output: &mut Output<'a>,
    ) {
        let id = text(node, "id");
        if self.has_head {
            let is_same = id.is_some() && self.id.as_deref() == id.as_deref();
            return match self.has_content && !is_same {
                true => output.second_message(),
                false => output.second_start(),
            };
        }
        self.has_head = true;
        let own = id.as_deref().filter(|id| id.len() <= MAX_NAME_BYTES);
        self.id = own.map(str::to_owned);
        self.start(id, message, output);
        if let Some(message) = message {
            self.message(message, output);
        }
    }

    fn start<'a>(
        &mut self,
        id: Option<std::borrow::Cow<'a, str>>,
        message: Option<&Node<'a>>,
        output: &mut Output<'a>,
    ) {
        self.has_started = true;
        let update = output.choice(CHOICE);
        update.id = id;
        update.role = message.and_then(|message| text(message, "role"));
    }

    /// Opens the choice of a stream whose start is missing.
    fn ensure_started(&mut self, output: &mut Output<'_>) {
        self.has_content = true;
        if !std::mem::replace(&mut self.has_started, true) {
            output.choice(CHOICE);
        }
    }

    /// Reads a message that may be complete.
    fn message<'a>(&mut self, message: &Node<'a>, output: &mut Output<'a>) {
        self.plan(fragment(message, "tool_plan"), output);
        self.contents(message, output);
        let calls = entries(message.get("tool_calls"));
        for (position, call) in (0..).zip(calls) {
            self.call_start(position, call, output);
            self.flush_call(position, output);
        }
        for citation in entries(message.get("citations")) {
            output.entry(CHOICE, "annotations", &raw(citation));
        }
        let is_set = |key: &str| message.get(key).is_some_and(Node::is_set);
        self.has_content |= ["content", "tool_plan", "tool_calls", "citations"]
            .into_iter()
            .any(is_set);
        const KNOWN: [&str; 5] = ["role", "content", "tool_plan", "tool_calls", "citations"];
        for (key, value) in other_fields(message, &KNOWN) {
            output.message_field(CHOICE, key, value);
        }
    }

    fn contents<'a>(&mut self, message: &Node<'a>, output: &mut Output<'a>) {
        let content = message.get("content");
        if let Some(content) = content.and_then(Node::fragment) {
            return output.text(CHOICE, Lane::Content, Some(content));
        }
        for content in entries(content) {
            self.content(content, output);
        }
    }

    /// Reads a content, or a part of a list in place of its text (C11).
    fn content<'a>(&mut self, content: &Node<'a>, output: &mut Output<'a>) {
        let has_text = content.get("text").is_some() || content.get("thinking").is_some();
        for part in parts(content.get("thinking")) {
            reasoning(&mut self.halves.thinking, text_of_part(part), output);
        }
        match content.get("text").and_then(Node::as_array) {
            Some(parts) => {
                for part in parts {
                    self.content(part, output);
                }
            }
            None => output.text(CHOICE, Lane::Content, text_of_part(content)),
        }
        if !has_text && content.get("type").is_some() {
            output.entry(CHOICE, CONTENT_PARTS, &raw(content));
        }
    }

    fn plan<'a>(&mut self, piece: Option<Fragment<'a>>, output: &mut Output<'a>) {
        let Some(piece) = piece.filter(|piece| !piece.is_empty()) else {
            return;
        };
        if self.plan.bytes() <= MAX_EVENT_BYTES {
            self.plan.append("tool_plan", &piece);
        }
        reasoning(&mut self.halves.plan, Some(piece), output);
    }

    fn report_plan(&mut self, output: &mut Output<'_>) {
        report_half(&mut self.halves.plan, output);
        report_half(&mut self.halves.thinking, output);
        if self.halves.logprobs.take().is_some() {
            output.choice(CHOICE).logprobs = Some("{\"text\":\"\u{FFFD}\"}".into());
        }
        for (key, value) in std::mem::take(&mut self.plan).into_fields() {
            output.message_field(CHOICE, key, value);
        }
    }

    /// Reports the arguments of starts that no fragment has replaced.
    fn flush_calls(&mut self, output: &mut Output<'_>) {
        for (_, call) in &mut self.open {
            call.flush(CHOICE, output);
        }
    }

    /// The same for the call that ends.
    fn flush_call(&mut self, index: i64, output: &mut Output<'_>) {
        let mut open = self.open.iter_mut().rev();
        if let Some((_, call)) = open.find(|(known, _)| *known == index) {
            call.flush(CHOICE, output);
        }
    }

    fn call_start<'a>(&mut self, index: i64, node: &Node<'a>, output: &mut Output<'a>) {
        // Arguments that come after the start of the next call would seem to be late.
        self.flush_calls(output);
        let mut call = self.calls.open();
        call_header(&mut call, node, output);
        if self.open.len() >= MAX_ENTRIES {
            let (_, mut oldest) = self.open.remove(0);
            self.calls.close(CHOICE, &mut oldest, output);
        }
        self.open.push((index, call));
    }

    /// Reads the start of a call that is open: one that its first delta has overtaken, or that comes twice. False for any other.
    fn call_restart<'a>(&mut self, index: i64, node: &Node<'a>, output: &mut Output<'a>) -> bool {
        let mut open = self.open.iter_mut().rev();
        let Some((_, call)) = open.find(|(known, _)| *known == index) else {
            return false;
        };
        let is_it = call.has_start(text(node, "id").as_deref());
        if is_it && call.start.is_none() {
            call_header(call, node, output);
        } else if is_it {
            let function = node.get("function").unwrap_or(node);
            call.fill_name(CHOICE, fragment(function, "name"), output);
            if !call.has_arguments() {
                let first = arguments_of(function.get("arguments"));
                call.append_of_start(CHOICE, first, false, output);
            }
        }
        is_it
    }

    fn call_delta<'a>(&mut self, index: i64, node: &Node<'a>, output: &mut Output<'a>) {
        let function = node.get("function").unwrap_or(node);
        if !self.open.iter().any(|(known, _)| *known == index) {
            output.warn("A8", "a delta of a call that was not started");
            self.call_start(index, node, output);
            let is_start = text(node, "id").is_some() || text(function, "name").is_some();
            if let Some((_, call)) = self.open.last_mut().filter(|_| !is_start) {
                call.start = None;
            }
            return;
        }
        let mut open = self.open.iter_mut().rev();
        if let Some((_, call)) = open.find(|(known, _)| *known == index) {
            call.append(CHOICE, arguments_of(function.get("arguments")), output);
        }
    }

    fn logprobs<'a>(&mut self, node: &Node<'a>, output: &mut Output<'a>) {
        let half = &mut self.halves.logprobs;
        for logprobs in entries(node.get("logprobs")) {
            let text = logprobs.get("text").and_then(Node::fragment);
            let is_cut =
                |text: &Fragment<'_>| half.is_some() || text.low.is_some() || text.high.is_some();
            output.choice(CHOICE).logprobs = Some(match text.filter(is_cut) {
                None => raw(logprobs),
                Some(piece) => {
                    let mut text = String::new();
                    piece.append_to(&mut text, half);
                    let mut object = Object::new(logprobs);
                    object.set("text", serde_json::Value::from(text).to_string());
                    object.to_json().into()
                }
            });
        }
    }

    /// Keeps the fields of the last event and of its delta that are not read. Those of a body stand together.
    fn end_fields<'a>(
        &mut self,
        node: &Node<'a>,
        delta: Option<&Node<'a>>,
        output: &mut Output<'a>,
    ) {
        const KNOWN: [&str; 9] = [
            "type",
            "id",
            "index",
            "delta",
            "message",
            "logprobs",
            "finish_reason",
            "usage",
            "error",
        ];
        let of_both = [Some(node), delta].into_iter().flatten();
        output.stream_fields(of_both.flat_map(|node| other_fields(node, &KNOWN)));
    }

    /// Reads the end of the message, or of a body.
    fn end<'a>(&mut self, node: &Node<'a>, output: &mut Output<'a>) {
        self.report_plan(output);
        for (_, mut call) in std::mem::take(&mut self.open) {
            self.calls.close(CHOICE, &mut call, output);
        }
        let reason = reason_of(node.get("finish_reason"));
        if let Some(reason) = &reason {
            self.calls.finish(CHOICE, reason, output);
        }
        output.usage(node.get("usage"));
        let update = output.choice(CHOICE);
        update.finish_reason = reason;
        update.error = reported(node).map(raw); // H06
        output.done();
    }
}

/// The parts of a list, or one part in place of it, which may be a text alone.
fn parts<'n, 'a>(node: Option<&'n Node<'a>>) -> &'n [Node<'a>] {
    let list = node.and_then(Node::as_array);
    list.unwrap_or_else(|| node.map_or(&[], std::slice::from_ref))
}

/// Reports a piece of the plan or of the thinking. The half of a character at its end waits for the next piece of the same text.
fn reasoning<'a>(half: &mut Option<u16>, piece: Option<Fragment<'a>>, output: &mut Output<'a>) {
    if let Some(mut piece) = piece.filter(|piece| !piece.is_empty()) {
        report_half(half, output);
        *half = piece.high.take();
        output.text(CHOICE, Lane::Reasoning, Some(piece));
    }
}

/// Reports the half of a character, which the choice joins to what follows (C14).
fn report_half(half: &mut Option<u16>, output: &mut Output<'_>) {
    if let Some(high) = half.take() {
        let fragment = Fragment::default().with_high(high);
        output.text(CHOICE, Lane::Reasoning, Some(fragment));
    }
}

/// Reports what the start of a call says.
fn call_header<'a>(call: &mut Call, node: &Node<'a>, output: &mut Output<'a>) {
    let function = node.get("function").unwrap_or(node);
    let mut extra = other_fields(node, &["id", "type", "function", "name", "arguments"]);
    extra.append(&mut other_fields(
        function,
        &["id", "type", "name", "arguments"],
    ));
    let header = ToolCallUpdate {
        id: text(node, "id"),
        kind: text(node, "type"),
        name: fragment(function, "name"),
        extra,
        ..ToolCallUpdate::default()
    };
    call.begin(CHOICE, header, output);
    let first = arguments_of(function.get("arguments"));
    match call.has_arguments() {
        true => call.append(CHOICE, first, output),
        false => call.append_of_start(CHOICE, first, false, output),
    }
}

fn index(node: &Node<'_>) -> i64 {
    node.get("index")
        .and_then(Node::as_i64_lenient)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests;
