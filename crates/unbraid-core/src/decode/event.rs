//! Interprets an event that neither a template nor the scan has read.

use std::borrow::Cow;

use super::{DecodePath, Decoder, Emitter, lenient, strict, updates::drop_long_names};
use crate::{
    Update,
    depth::is_deeper_than,
    frame::{Frame, FrameKind},
    node::{self, Node},
};

impl Decoder {
    /// Decodes an event by its name and its data; false if strict mode has to end the stream.
    pub(super) fn decode_event<'a>(
        &mut self,
        frame: &Frame<'_>,
        text: &'a str,
        emitter: &mut Emitter<'a, '_>,
    ) -> bool {
        self.warn_of_framing(frame.kind, emitter);
        // Before everything that interprets the data: binary messages say what they are in their headers.
        if self.message_frame(frame, text, emitter) {
            return true;
        }
        // A truncated event is decoded if its data is complete. Incomplete data is lost in one piece: a prefix of it
        // must not be taken for a value.
        let is_named = frame.event.is_some();
        if frame.kind == FrameKind::Truncated {
            if (self.strict || is_named) && !self.is_complete(text) {
                emitter.is_cut = true;
                emitter.count_lost(text.len());
                return !self.strict;
            }
            emitter.is_cut = !is_named;
        }
        // These two names mean the same in every dialect. Any other is read by the dialect of the stream.
        match frame.event {
            Some(b"error") => self.error_event(text, emitter),
            Some(b"ping") if self.is_ping(text) => {
                emitter.is_chunk = true; // S16
                self.keep_alive_in_dialect(emitter);
                true
            }
            _ => self.payload(text, emitter) || self.salvage_unless_strict(text, emitter),
        }
    }

    /// Whether the data of an event named `ping` is nothing but one. What its data says takes precedence (D09): proxies that add
    /// the name without an empty line after it give it to the next event.
    fn is_ping(&self, text: &str) -> bool {
        let trimmed = text.trim();
        if is_done_mark(trimmed) {
            return false;
        }
        match node::read(trimmed, self.max_depth) {
            Ok(node) => {
                let values = node
                    .as_array()
                    .unwrap_or_else(|| std::slice::from_ref(&node));
                !values.iter().any(|value| self.dialect.has_content(value))
            }
            Err(_) => !trimmed.contains('\n'),
        }
    }

    fn warn_of_framing(&mut self, kind: FrameKind, emitter: &mut Emitter<'_, '_>) {
        match kind {
            FrameKind::BareDone => emitter.warn("S9", "[DONE] without a field name"),
            FrameKind::Json | FrameKind::Garbage if emitter.event_index == 0 => {
                emitter.is_bare_json = true;
            }
            FrameKind::Line => {
                self.in_parts = true;
                emitter.warn("S10", "several events without a blank line between them");
            }
            FrameKind::Json
            | FrameKind::BareJson
            | FrameKind::Garbage
            | FrameKind::Event
            | FrameKind::Truncated
            | FrameKind::Message
            | FrameKind::Exception
            | FrameKind::TruncatedMessage => {}
        }
    }

    fn salvage_unless_strict<'a>(&mut self, text: &'a str, emitter: &mut Emitter<'a, '_>) -> bool {
        self.warn_of_bare_json(emitter);
        !self.strict && {
            self.salvage(text, emitter);
            true
        }
    }

    /// Warns of JSON lines and arrays. Other dialects than chat are defined like that.
    fn warn_of_bare_json(&self, emitter: &mut Emitter<'_, '_>) {
        if std::mem::take(&mut emitter.is_bare_json) && !self.dialect.is_other() {
            emitter.warn("S29", "JSON without event-stream framing");
        }
    }

    /// Decodes one JSON value, an end mark or a keep-alive; false if the text is none of them.
    pub(super) fn payload<'a>(&mut self, text: &'a str, emitter: &mut Emitter<'a, '_>) -> bool {
        let trimmed = text.trim();
        if is_done_mark(trimmed) {
            self.warn_of_bare_json(emitter);
            if text != "[DONE]" {
                emitter.warn("S8", "an end mark that is not exactly [DONE]");
            }
            // What the dialect has held back belongs before the end mark, which ends every choice.
            self.end_in_dialect(false, emitter);
            emitter.is_chunk = true;
            emitter.done = true;
            return true;
        }
        // Strict mode makes no exception for such data.
        // The name of an event says what it is in another dialect, even if its data is empty.
        let is_named = emitter.event_name.is_some() && self.dialect.is_other() && trimmed == "{}";
        if !self.strict && is_keep_alive(trimmed) && !is_named {
            self.warn_of_bare_json(emitter);
            warn_of_keep_alive(trimmed, emitter);
            self.keep_alive_in_dialect(emitter);
            return true;
        }
        // Checked before `serde_json`, whose own limit is fixed at 128 levels.
        if is_deeper_than(trimmed, self.max_depth) {
            return false;
        }
        // Once another dialect is known, no field of a value is taken for a chunk: `choices` may mean anything there.
        if let Some(is_read) = self.payload_in_dialect(trimmed, emitter) {
            return is_read;
        }
        let mut has_template = false;
        if self.strict {
            match self.check_strictly(trimmed) {
                Ok(matched) => has_template = matched,
                Err(refusal) => {
                    emitter.refusal = refusal;
                    return false;
                }
            }
        }
        let ordinary = || strict::chunk(trimmed, &self.reasoning_keys);
        if let Some(mut chunk) = (self.path != DecodePath::FieldByField)
            .then(ordinary)
            .flatten()
            .filter(|chunk| self.accepts_chunk(chunk, emitter.event_name))
        {
            self.warn_of_bare_json(emitter);
            drop_long_names(&mut chunk);
            // A chunk that matches a template needs no further one.
            let template = (!has_template)
                .then(|| self.template_of(text, &chunk, false))
                .flatten();
            self.keep_template(template);
            self.emit_chunk(chunk, emitter);
            return true;
        }
        // Parsed again from the start, which costs time only for events that no earlier path could read.
        match node::read(trimmed, self.max_depth) {
            Ok(node) => {
                self.value(&node, emitter);
                true
            }
            Err(_) => false,
        }
    }

    /// Decodes a JSON value of any kind; the entries of an array count one by one (X10, S29).
    pub(super) fn value<'a>(&mut self, node: &Node<'a>, emitter: &mut Emitter<'a, '_>) {
        if self.read_all_in_dialect(node, emitter) {
            return;
        }
        self.warn_of_bare_json(emitter);
        let items = node
            .as_array()
            .unwrap_or_else(|| std::slice::from_ref(node));
        if items.iter().any(|item| item.as_object().is_none()) {
            emitter.warn("X13", "JSON that is not an object was skipped");
        }
        for item in items {
            // Checked for each entry, because a list of a million empty objects fits into one event.
            if emitter.is_full() {
                return emitter.warn_skipped();
            }
            let name = emitter.event_name;
            let chunk = lenient::chunk(
                item,
                name,
                emitter.event_index,
                &self.reasoning_keys,
                self.is_text_stream,
            );
            if self.skips_foreign(item, &chunk, emitter) {
                emitter.push(Update {
                    format: chunk.format,
                    ..Update::default()
                });
            } else {
                self.emit_chunk(chunk, emitter);
            }
        }
    }

    /// Decodes an event named `error`, which is an error whatever its data is (S15).
    fn error_event<'a>(&mut self, text: &'a str, emitter: &mut Emitter<'a, '_>) -> bool {
        if !self.dialect.is_other() {
            emitter.warn("S15", "an event named error");
        }
        self.end_in_dialect(true, emitter);
        emitter.is_chunk = true;
        let is_value = |text: &str| node::read(text, self.max_depth).is_ok();
        // Asked first: the JSON of an error may itself contain line breaks.
        let mut text = text.trim();
        let mut is_one_value = is_value(text);
        if !is_one_value && let Some(before) = before_marks(text) {
            text = before;
            is_one_value = is_value(text);
        }
        let last_line = match text.rsplit_once('\n').filter(|_| !is_one_value) {
            Some((before, last_line)) => {
                // S32: the server wrote half a frame, and then the error on a line of its own.
                self.lines(before, emitter);
                emitter.warn_lost(); // the error ends the stream, so a later update cannot carry the warning
                last_line
            }
            None => text,
        };
        emitter.push(Update {
            error: Some(error_json(last_line.trim(), self.max_depth)),
            is_chunk: true,
            ..Update::default()
        });
        true
    }
}

/// The text before the end marks and keep-alives that are its last lines, because no blank line separated them (S10); `None` if
/// there are none, or nothing else.
fn before_marks(text: &str) -> Option<&str> {
    let mut rest = text;
    while let Some((before, line)) = rest.rsplit_once('\n')
        && (is_done_mark(line.trim()) || is_keep_alive(line.trim()))
    {
        rest = before.trim_end();
    }
    (rest.len() < text.len() && !rest.is_empty()).then_some(rest)
}

/// Whether data is the end mark, which some servers put in quotes (S8), or after a second field name (S27).
pub(super) fn is_done_mark(trimmed: &str) -> bool {
    let data = trimmed
        .strip_prefix("data:")
        .map_or(trimmed, str::trim_start);
    data.trim_matches('"') == "[DONE]"
}

/// Whether data only keeps the connection open.
fn is_keep_alive(trimmed: &str) -> bool {
    trimmed.is_empty()
        || trimmed.starts_with(':')
        || matches!(
            trimmed,
            "null" | "\"\"" | "{}" | "ping" | "\"ping\"" | "keep-alive" | "keepalive"
        )
}

fn warn_of_keep_alive(trimmed: &str, emitter: &mut Emitter<'_, '_>) {
    if trimmed.starts_with(':') {
        emitter.warn("S5", "a comment sent as data");
    } else if !trimmed.is_empty() {
        emitter.warn("S13", "a keep-alive sent as data"); // S12: no warning for nothing
    }
    emitter.is_chunk = true;
}

/// The JSON of an error, or its text as a JSON string.
pub(super) fn error_json(text: &str, depth: usize) -> Cow<'_, str> {
    /// No error message is longer, but an HTML page in place of one may be.
    const MAX_BYTES: usize = 1024 * 1024;
    match node::read(text, depth) {
        Ok(node) => node.to_json(),
        Err(_) => {
            let cut = (0..4).find_map(|back| text.get(..MAX_BYTES - back));
            let text = cut.unwrap_or(text);
            Cow::Owned(serde_json::Value::from(text).to_string())
        }
    }
}
