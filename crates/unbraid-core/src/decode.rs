//! One event's data becomes updates: by what is known of earlier ones, by one scan, by one strict attempt, then field by
//! field, then by what servers are known to do to an event as a whole.

pub(crate) mod chunk;
mod fill;
mod inside;
pub(crate) mod lenient;
mod merge;
pub(crate) mod node;
mod out;
mod recognise;
mod salvage;
mod scan;
mod strict;
mod tell;
mod template;
mod templates;
mod text;

use std::{borrow::Cow, sync::Arc};

use merge::Merged;
use out::Out;
pub(crate) use template::Found;
use templates::Templates;
use text::text_of;

use crate::{
    StreamError, Update,
    config::default_reasoning_keys,
    depth::is_deeper_than,
    frame::{Frame, FrameKind},
    text_delta::{DeltaKind, UpdateSink, Updates},
};

/// Decodes the events of one stream.
///
/// # Examples
///
/// ```
/// use unbraid_core::{limits::MAX_JSON_DEPTH, internal::{Decoder, FrameLimits, Framer}};
///
/// let mut framer = Framer::new(FrameLimits::new(1024, 1024), false);
/// let mut decoder = Decoder::new(false, MAX_JSON_DEPTH);
/// let mut read = &b"data: {\"choices\":[{\"index\":2,\"delta\":{\"content\":\"Hi\"}}]}\n\n"[..];
/// let mut texts = Vec::new();
/// while let Some(frame) = framer.next(&mut read) {
///     decoder.decode(frame?, &mut |update| {
///         texts.extend(update.content.as_ref().map(|piece| piece.text.to_string()));
///     })?;
/// }
/// assert_eq!(texts, ["Hi"]);
/// assert_eq!(decoder.events(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Decoder {
    strict: bool,
    depth: usize,
    at: u64,
    /// Envelope fields as they were last told: only changes are news.
    memo: Vec<(Box<str>, tell::Known)>,
    /// Choices whose reasoning comes in plain text: their details only repeat it (R4).
    plain_reasoning: Vec<u32>,
    templates: Templates,
    way: Way,
    scanned: u64,
    /// The names under which reasoning comes, by rank.
    reasoning: Vec<Arc<str>>,
    /// In strict mode: what the deltas so far add up to.
    merged: Merged,
    /// Whether an event came in parts, and was warned of (S10).
    in_parts: bool,
}

/// How events are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// By a template, by the scanner, by the parser, field by field: the first that can.
    First,
    /// By neither template nor scanner.
    Parser,
    /// Field by field.
    Fields,
}

impl Decoder {
    /// A decoder at the start of a stream.
    #[must_use]
    pub fn new(strict: bool, depth: usize) -> Self {
        Self {
            strict,
            depth,
            at: 0,
            memo: Vec::new(),
            plain_reasoning: Vec::new(),
            templates: Templates::default(),
            way: Way::First,
            scanned: 0,
            reasoning: default_reasoning_keys(),
            merged: Merged::default(),
            in_parts: false,
        }
    }

    /// The same decoder with other names under which reasoning comes; see [`Config::reasoning_keys`](crate::Config::reasoning_keys).
    #[must_use]
    pub fn with_reasoning_keys(mut self, keys: &[Arc<str>]) -> Self {
        self.reasoning = keys.to_vec();
        self
    }

    /// The same decoder for a stream of which every index is read as 0 (E12).
    pub(crate) fn folding(mut self, folds: bool) -> Self {
        self.merged.folds = folds;
        self
    }

    /// A decoder that reads every event with the parser: what the short way is compared with.
    #[doc(hidden)]
    #[must_use]
    pub fn reference(strict: bool, depth: usize) -> Self {
        Self {
            way: Way::Parser,
            ..Self::new(strict, depth)
        }
    }

    /// A decoder that reads every event field by field: what the parser itself is compared with.
    #[doc(hidden)]
    #[must_use]
    pub fn by_field(strict: bool, depth: usize) -> Self {
        Self {
            way: Way::Fields,
            ..Self::new(strict, depth)
        }
    }

    /// How many events were read by a template.
    #[doc(hidden)]
    #[must_use]
    pub fn fitted(&self) -> u64 {
        self.templates.fitted()
    }

    /// How many events were read by the scanner.
    #[doc(hidden)]
    #[must_use]
    pub fn scanned(&self) -> u64 {
        self.scanned
    }

    /// How many events were decoded: the ordinal of the next one.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.at
    }

    /// Decodes one frame: at least one update, the last one marked; none at all for empty data, which is no event (S12).
    ///
    /// # Errors
    ///
    /// In strict mode only: [`StreamError::Malformed`] for data that is not JSON (R07), and for deltas that cannot be
    /// merged (R11, R14).
    pub fn decode(
        &mut self,
        frame: Frame<'_>,
        sink: &mut dyn FnMut(&Update<'_>),
    ) -> Result<(), StreamError> {
        self.decode_to(frame, &mut Updates(sink))
    }

    pub(crate) fn decode_to(
        &mut self,
        mut frame: Frame<'_>,
        sink: &mut dyn UpdateSink,
    ) -> Result<(), StreamError> {
        if frame.kind == FrameKind::Line && self.in_parts {
            frame.kind = FrameKind::Event; // only the first part has to be warned of
        }
        if frame.data.is_empty() || self.fits(&frame, sink) {
            return Ok(());
        }
        self.templates.interrupt();
        if self.scans(&frame, sink) {
            return Ok(());
        }
        let text = text_of(frame.data);
        let mut out = Out::new(self.at, sink);
        if let Some(Cow::Owned(_)) = text {
            out.warn("S19", "invalid UTF-8 was replaced");
        }
        let understood = match &text {
            Some(text) => self.frame(&frame, text, &mut out),
            None => {
                out.lose(frame.data.len());
                false
            }
        };
        self.at += 1;
        let refused = self.strict && !understood;
        let error = StreamError::Malformed {
            what: out.refusal.unwrap_or("chunk JSON parsing failed"),
            event_index: out.at.into(),
            offset: frame.offset,
        };
        out.finish();
        if refused { Err(error) } else { Ok(()) }
    }

    /// Whether the event is like an earlier one; then it is told.
    fn fits(&mut self, frame: &Frame<'_>, sink: &mut dyn UpdateSink) -> bool {
        if frame.kind != FrameKind::Event || frame.event.is_some() {
            return false;
        }
        let found = self.find(frame.data);
        found.is_some_and(|found| found.length == frame.data.len() && self.tell(&found, sink))
    }

    /// What the bytes begin with, if it is like an earlier event's data.
    #[inline(always)]
    pub(crate) fn find<'t>(&self, data: &'t [u8]) -> Option<Found<'t>> {
        if self.way != Way::First {
            return None;
        }
        self.templates.find(data)
    }

    /// Tells an event that was found; false if it has to be looked at more closely.
    #[inline]
    pub(crate) fn tell<T: UpdateSink + ?Sized>(&mut self, found: &Found<'_>, sink: &mut T) -> bool {
        let plain_reasoning = &self.plain_reasoning;
        let merged = self.strict.then_some(&self.merged);
        let told = self.templates.tell(found, self.at, sink, |fit| {
            let says_enough =
                fit.lane != DeltaKind::Reasoning || plain_reasoning.contains(&fit.choice);
            says_enough && merged.is_none_or(|merged| merged.is_alike(fit.choice, found.template))
        });
        self.at += u64::from(told);
        told
    }

    /// False if the data is no JSON and strict mode has to end the stream.
    fn frame<'a>(&mut self, frame: &Frame<'_>, text: &'a str, out: &mut Out<'a, '_>) -> bool {
        match frame.kind {
            FrameKind::BareDone => out.warn("S9", "[DONE] without a field name"),
            FrameKind::Json | FrameKind::Garbage if out.at == 0 => {
                out.warn("S29", "JSON without event-stream framing")
            }
            FrameKind::Line => {
                self.in_parts = true;
                out.warn("S10", "several frames without a blank line between them");
            }
            FrameKind::Json | FrameKind::Garbage | FrameKind::Event | FrameKind::Truncated => {}
        }
        out.cut = frame.kind == FrameKind::Truncated;
        if out.cut && (self.strict || frame.event.is_some()) && !self.is_whole(text) {
            out.lose(text.len());
            return !self.strict;
        }
        out.cut &= frame.event.is_none();
        match frame.event {
            Some(b"error") => self.error_event(text, out),
            Some(b"ping") => {
                out.is_chunk = true; // S16
                true
            }
            _ => self.payload(text, out) || self.strict_or_salvage(text, out),
        }
    }

    fn strict_or_salvage<'a>(&mut self, text: &'a str, out: &mut Out<'a, '_>) -> bool {
        !self.strict && {
            self.salvage(text, out);
            true
        }
    }

    /// One JSON value, an end mark, or a keep-alive; false if it is none of them.
    fn payload<'a>(&mut self, text: &'a str, out: &mut Out<'a, '_>) -> bool {
        let trimmed = text.trim();
        if trimmed.trim_matches('"') == "[DONE]" {
            if text != "[DONE]" {
                out.warn("S8", "[DONE] in quotes or white space");
            }
            out.is_chunk = true;
            out.done = true;
            return true;
        }
        if !self.strict && self.keep_alive(trimmed, out) {
            return true;
        }
        if is_deeper_than(trimmed, self.depth) {
            return false;
        }
        let mut fits = false;
        if self.strict {
            match self.merge(trimmed) {
                Ok(fitted) => fits = fitted,
                Err(refusal) => {
                    out.refusal = refusal;
                    return false;
                }
            }
        }
        let ordinary = || strict::chunk(trimmed, &self.reasoning);
        if let Some(mut chunk) = (self.way != Way::Fields).then(ordinary).flatten() {
            tell::drop_long_names(&mut chunk);
            // A chunk that one fits already needs no further template.
            let template = (!fits)
                .then(|| self.templates.learn(text, &chunk))
                .flatten();
            if !self.emit(chunk, out) {
                self.keep(template);
            }
            return true;
        }
        match node::read(trimmed, self.depth) {
            Ok(node) => {
                self.value(&node, out);
                true
            }
            Err(_) => false,
        }
    }

    /// Strict mode: the data has to be JSON by its grammar, and its deltas have to fit those before. True if a template
    /// fits, too. The error says why the deltas are refused, if they are.
    fn merge(&mut self, data: &str) -> Result<bool, Option<&'static str>> {
        let node = node::read_json(data, self.depth).map_err(|_| None)?;
        self.merged.merge(&node).map_err(Some)?;
        let found = self.find(data.as_bytes());
        let found = found.filter(|found| found.length == data.len());
        let fits = found.map(|found| (found.index, found.template));
        if let Some((choice, template)) = fits {
            self.merged.note_alike(choice, template);
        }
        Ok(fits.is_some())
    }

    fn keep(&mut self, template: Option<template::Template>) {
        if template.is_some() {
            self.merged.forget_alike(); // the templates get other numbers
        }
        self.templates.keep(template);
    }

    fn keep_alive(&self, trimmed: &str, out: &mut Out<'_, '_>) -> bool {
        if trimmed.starts_with(':') {
            out.warn("S5", "a comment sent as data");
        } else if trimmed.is_empty() {
            // S12: silent.
        } else if matches!(
            trimmed,
            "null" | "\"\"" | "{}" | "ping" | "\"ping\"" | "keep-alive" | "keepalive"
        ) {
            out.warn("S13", "a keep-alive sent as data");
        } else {
            return false;
        }
        out.is_chunk = true;
        true
    }

    /// A JSON value of any kind; the entries of an array count one by one (X10, S29).
    fn value<'a>(&mut self, node: &node::Node<'a>, out: &mut Out<'a, '_>) {
        match node.as_array() {
            Some(items) => {
                for item in items {
                    if out.is_full() {
                        return out.skip();
                    }
                    let chunk = lenient::chunk(item, out.at, &self.reasoning);
                    self.emit(chunk, out);
                }
            }
            None => {
                let chunk = lenient::chunk(node, out.at, &self.reasoning);
                self.emit(chunk, out);
            }
        }
    }

    /// S15: the event's name says error, whatever its data looks like.
    fn error_event<'a>(&mut self, text: &'a str, out: &mut Out<'a, '_>) -> bool {
        out.warn("S15", "an event named error");
        out.is_chunk = true;
        let text = text.trim();
        let whole = node::read(text, self.depth).is_ok();
        let last = match text.rsplit_once('\n').filter(|_| !whole) {
            Some((before, last)) => {
                self.lines(before, out); // S32: a half-written frame before it; its last line is the error
                out.warn_of_loss(); // nothing counts behind the error
                last
            }
            None => text,
        };
        out.push(Update {
            error: Some(error_json(last.trim(), self.depth)),
            is_chunk: true,
            ..Update::default()
        });
        true
    }
}

/// The JSON of an error, or its text as a JSON string.
fn error_json(text: &str, depth: usize) -> Cow<'_, str> {
    /// No message is longer; a page of HTML may be.
    const MOST: usize = 1024 * 1024;
    match node::read(text, depth) {
        Ok(node) => node.to_json(),
        Err(_) => {
            let cut = (0..4).find_map(|back| text.get(..MOST - back));
            let text = cut.unwrap_or(text);
            Cow::Owned(serde_json::Value::from(text).to_string())
        }
    }
}

#[cfg(test)]
mod tests;
