//! Decodes the data of one event into [`Update`]s.
//!
//! Four paths are tried in this order, and each of them may only decline, never guess:
//!
//! 1. a template of an earlier chunk (`decode/templates.rs`);
//! 2. a single scan over the bytes (`decode/scan.rs`);
//! 3. one pass of `serde_json` (`decode/strict.rs`), the reference for the first two;
//! 4. field by field over a tolerant reader (`decode/lenient.rs`).
//!
//! Data that is not a single JSON value is taken apart by `decode/salvage.rs`.

mod dialect_end;
mod dialects;
mod emit;
mod envelope;
mod event;
mod fields;
mod json_bytes;
mod lenient;
mod merge;
mod salvage;
mod scan;
mod strict;
mod template;
mod templates;
mod text;
mod updates;

use std::{borrow::Cow, sync::Arc};

use dialects::DialectState;
use emit::Emitter;
use envelope::EnvelopeMemo;
use merge::MergeCheck;
pub(crate) use template::TemplateMatch;
use template::{Learned, ProviderEvent, Template};
use templates::Templates;
use text::text_of;

use crate::{
    Dialect, EventIndex, StreamError, Update,
    chunk::{Chunk, Element},
    config::default_reasoning_keys,
    frame::{Frame, FrameKind},
    json::{Verdict, check_cut},
    node,
    prefetch::prefetch,
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
/// let mut input = &b"data: {\"choices\":[{\"index\":2,\"delta\":{\"content\":\"Hi\"}}]}\n\n"[..];
/// let mut texts = Vec::new();
/// while let Some(frame) = framer.next(&mut input) {
///     decoder.decode(frame?, &mut |update| {
///         texts.extend(update.content.as_ref().map(|content| content.text.to_string()));
///     })?;
/// }
/// assert_eq!(texts, ["Hi"]);
/// assert_eq!(decoder.events(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
// What an event that matches a template needs lies together, as in `Router`.
#[repr(C)]
pub struct Decoder {
    scanned: u64,
    buffers: scan::Buffers,
    /// The names of the fields that hold reasoning, by rank.
    reasoning_keys: Arc<[Arc<str>]>,
    dialect: DialectState,
    max_depth: usize,
    strict: bool,
    /// Whether an event arrived in parts, which is warned about only once (S10).
    in_parts: bool,
    /// Whether the only choice of a chunk had no index, which is warned about only once, too (E8).
    lacks_index: bool,
    path: DecodePath,
    /// Events that were decoded, which is the ordinal of the next one.
    events: u64,
    /// In strict mode: the types of all fields that the deltas have brought so far.
    merge_check: Option<Box<MergeCheck>>,
    /// Whether a chunk has shown that this is a text completion, of which a later chunk may omit the `text` (C19).
    is_text_stream: bool,
    /// Choices that send their reasoning as text of its own: their `reasoning_details` only repeat it (R4).
    reasoning_text_choices: Vec<u32>,
    envelope: EnvelopeMemo,
    templates: Templates,
    /// Where the event began that the end of the body cut.
    cut: Option<EventStart>,
}

/// Where an event began in the stream.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EventStart {
    pub(crate) index: EventIndex,
    pub(crate) offset: u64,
}

/// Which of the decode paths are used. Tests and fuzzing compare the results of all three.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DecodePath {
    /// All paths: template, scan, `serde_json`, field by field.
    All,
    /// Neither template nor scan.
    SerdeJson,
    /// Only field by field.
    FieldByField,
}

impl Decoder {
    /// Creates a decoder at the start of a stream.
    #[must_use]
    pub fn new(strict: bool, depth: usize) -> Self {
        Self {
            strict,
            max_depth: depth,
            events: 0,
            envelope: EnvelopeMemo::default(),
            reasoning_text_choices: Vec::new(),
            templates: Templates::default(),
            path: DecodePath::All,
            scanned: 0,
            buffers: scan::Buffers::default(),
            reasoning_keys: default_reasoning_keys(),
            merge_check: strict.then(Box::default),
            in_parts: false,
            lacks_index: false,
            is_text_stream: false,
            dialect: DialectState::default(),
            cut: None,
        }
    }

    /// Sets the names of the fields that hold reasoning; see [`Config::reasoning_keys`](crate::Config::reasoning_keys).
    #[must_use]
    pub fn with_reasoning_keys(mut self, keys: &[Arc<str>]) -> Self {
        if *self.reasoning_keys != *keys {
            self.reasoning_keys = keys.into();
        }
        self
    }

    /// Sets the dialect, in place of the one that the first values identify (D05).
    #[doc(hidden)]
    #[must_use]
    pub fn with_dialect(mut self, dialect: Option<Dialect>) -> Self {
        self.is_text_stream = dialect == Some(Dialect::Text);
        self.dialect = DialectState::new(dialect);
        self
    }

    /// Sets whether every index is read as choice 0 (E12).
    #[doc(hidden)]
    #[must_use]
    pub fn fold_choices(mut self, fold: bool) -> Self {
        if let Some(check) = &mut self.merge_check {
            check.fold_choices = fold;
        }
        self
    }

    /// Creates a decoder that reads every event with `serde_json`: the reference for the template and the scan.
    #[doc(hidden)]
    #[must_use]
    pub fn reference(strict: bool, depth: usize) -> Self {
        Self {
            path: DecodePath::SerdeJson,
            ..Self::new(strict, depth)
        }
    }

    /// Creates a decoder that reads every event field by field: the reference for the `serde_json` path.
    #[doc(hidden)]
    #[must_use]
    pub fn by_field(strict: bool, depth: usize) -> Self {
        Self {
            path: DecodePath::FieldByField,
            ..Self::new(strict, depth)
        }
    }

    /// Returns how many events a template decoded.
    #[doc(hidden)]
    #[must_use]
    pub fn template_hits(&self) -> u64 {
        self.templates.hits()
    }

    /// Returns how many events the scan decoded.
    #[doc(hidden)]
    #[must_use]
    pub fn scanned(&self) -> u64 {
        self.scanned
    }

    /// Returns how many events were decoded, which is the ordinal of the next one.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Where the event began that the end of the body cut, if that was one with JSON.
    pub(crate) fn cut(&self) -> Option<EventStart> {
        self.cut
    }

    /// Loads what the next event most likely needs.
    #[inline]
    pub(crate) fn prefetch(&mut self) {
        self.templates.prefetch();
        prefetch(self.scanned + self.events + self.envelope.version());
    }

    /// Decodes one frame into at least one update, of which the last one is marked. Empty data is not an event, and gives
    /// no update.
    ///
    /// # Errors
    ///
    /// Only in strict mode: [`StreamError::Malformed`] for data that is not JSON, and for deltas that cannot be merged
    /// because a field changes its type or cannot be appended.
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
            frame.kind = FrameKind::Event; // only the first part is warned about
        }
        let is_ignored = match frame.kind {
            FrameKind::Exception => false,
            FrameKind::BareJson => !self.is_bare_error(frame.data),
            _ => frame.data.is_empty(),
        };
        if is_ignored || self.decode_by_template(&frame, sink) {
            return Ok(());
        }
        // From here on another path emits the event, possibly with another envelope.
        self.templates.interrupt();
        if self.decode_by_scan(&frame, sink) {
            return Ok(());
        }
        let text = text_of(frame.data);
        let mut emitter = Emitter::new(self.events, sink);
        emitter.event_name = frame.event;
        if matches!(text, Some(Cow::Owned(_))) && frame.kind != FrameKind::TruncatedMessage {
            emitter.warn("S19", "invalid UTF-8 was replaced");
        }
        // Text that would grow beyond the limit is counted as lost. Unless in strict mode, the stream goes on.
        let understood = match &text {
            Some(text) => self.decode_event(&frame, text, &mut emitter),
            None => {
                emitter.count_lost(frame.data.len());
                false
            }
        };
        if emitter.has_cut_data() {
            let text = text.as_deref().unwrap_or_default();
            self.cut_in_dialect(text);
            self.cut = is_cut_value(&frame, text).then_some(EventStart {
                index: self.events.into(),
                offset: frame.offset,
            });
        }
        self.events += 1;
        let refused = emitter.is_malformed || (self.strict && !understood);
        // Built before `finish` consumes the emitter. The updates before the error are still delivered.
        let error = StreamError::Malformed {
            what: emitter.refusal.unwrap_or("chunk JSON parsing failed"),
            event_index: emitter.event_index.into(),
            offset: frame.offset,
        };
        emitter.finish();
        if refused { Err(error) } else { Ok(()) }
    }

    /// Decodes an event that matches a template; false if none does.
    fn decode_by_template(&mut self, frame: &Frame<'_>, sink: &mut dyn UpdateSink) -> bool {
        // A chat chunk without framing, or with a name, is warned about or means something else.
        let is_usual = match frame.kind {
            FrameKind::Event => frame.event.is_none() || self.dialect.is_other(),
            FrameKind::Json => self.dialect.is_other(),
            _ => false,
        };
        if !is_usual {
            return false;
        }
        let found = self.match_template(frame.data);
        found.is_some_and(|found| {
            found.length == frame.data.len() && self.emit_match(&found, frame.event, sink)
        })
    }

    /// The name of the last event that matched a template.
    #[inline]
    pub(crate) fn usual_name(&self) -> Option<&[u8]> {
        self.templates.usual_name()
    }

    /// Matches the start of the data with the templates of earlier events.
    #[inline(always)]
    pub(crate) fn match_template<'t>(&mut self, data: &'t [u8]) -> Option<TemplateMatch<'t>> {
        if self.path != DecodePath::All {
            return None;
        }
        self.templates.find(data)
    }

    /// Emits an event of this name that matched a template; false if it needs a slower path after all.
    #[inline]
    pub(crate) fn emit_match<T: UpdateSink + ?Sized>(
        &mut self,
        found: &TemplateMatch<'_>,
        name: Option<&[u8]>,
        sink: &mut T,
    ) -> bool {
        let reasoning_text_choices = &self.reasoning_text_choices;
        let merge_check = &self.merge_check;
        let envelope = &mut self.envelope;
        let dialect = &mut self.dialect;
        let emitted = self
            .templates
            .emit(found, self.events, envelope, sink, |target| {
                if target.provided.is_some() {
                    return dialect.continues(&target, name);
                }
                // The first reasoning text of each choice takes a slower path, which records that the choice sends text: its
                // `reasoning_details` are dropped from then on.
                let is_recorded = target.text_kind != DeltaKind::Reasoning
                    || reasoning_text_choices.contains(&target.choice);
                is_recorded
                    && merge_check
                        .as_ref()
                        .is_none_or(|check| check.can_skip(target.choice, found.template))
            });
        // After the match was accepted: a declined event is read again by another path, which counts it.
        self.events += u64::from(emitted);
        emitted
    }

    /// Strict mode: checks that the data is JSON by its grammar and that its deltas can be merged with the earlier ones.
    /// Returns whether a template matches as well. The error is the reason if the deltas are refused.
    fn check_strictly(&mut self, data: &str) -> Result<bool, Option<&'static str>> {
        let node = node::read_json(data, self.max_depth).map_err(|_| None)?;
        // Merged even if a template matches: only what was merged twice may be skipped.
        if let Some(check) = &mut self.merge_check {
            check.merge(&node).map_err(Some)?;
        }
        // The match is only noted here. Once it was merged twice, later chunks like it skip this path.
        let found = self.match_template(data.as_bytes());
        let found = found.filter(|found| found.length == data.len());
        let matched = found.map(|found| (found.index, found.template));
        if let (Some((choice, template)), Some(check)) = (matched, &mut self.merge_check) {
            check.note_template_match(choice, template);
        }
        Ok(matched.is_some())
    }

    /// Builds a template of an ordinary chunk, if that is worth it. `is_scanned` if the chunk is as the scan has read it.
    fn template_of<'a>(
        &mut self,
        text: &'a str,
        chunk: &Chunk<'a>,
        is_scanned: bool,
    ) -> Option<Template> {
        if !Template::is_possible(chunk) {
            return None;
        }
        let has_text = |element: &Element<'_>| element.update.only_text().is_some();
        let repeats = chunk.elements.iter().any(has_text) || self.templates.repeats_textless();
        if !repeats || !self.templates.should_learn(text) {
            return None;
        }
        // A second scan keeps the escapes. Without any, it would find the same, and the span of a text that alone has some
        // is known.
        let text_span = only_escaped_text(chunk);
        let escaped = if is_scanned && (chunk.escapes.count == 0 || text_span.is_some()) {
            None
        } else {
            let keys = &self.reasoning_keys;
            Some(scan::escaped_chunk(text, self.max_depth, keys)?)
        };
        Template::new(&Learned {
            text,
            chunk,
            escaped: escaped.as_ref().unwrap_or(chunk),
            text_span: text_span.filter(|_| is_scanned),
            depth: self.max_depth,
            is_strict: self.strict,
        })
    }

    fn keep_template(&mut self, template: Option<Template>) {
        if let Some(template) = template {
            // Inserting a template renumbers the others.
            if let Some(check) = &mut self.merge_check {
                check.forget_template_matches();
            }
            self.templates.insert(template);
        }
    }
}

/// The span of the text of a chunk, if that is the only string with escapes that the scan has read.
fn only_escaped_text(chunk: &Chunk<'_>) -> Option<(usize, usize)> {
    let [element] = chunk.elements.as_slice() else {
        return None;
    };
    let (_, text) = element.update.only_text()?;
    // Nothing but escapes and joined parts makes the scan copy a text.
    let is_copied = matches!(text.text, Cow::Owned(_));
    let is_only = is_copied && chunk.escapes.count == 1 && !chunk.escapes.may_join;
    is_only.then_some(chunk.escapes.last)
}

/// Whether the data of an event, or a binary message, only lacks its end.
fn is_cut_value(frame: &Frame<'_>, text: &str) -> bool {
    let text = text.trim_start();
    frame.kind == FrameKind::TruncatedMessage
        || (!text.is_empty() && "[DONE]".starts_with(text))
        || (text.starts_with(['{', '[']) && check_cut(text) == Verdict::Truncated)
}

#[cfg(test)]
mod tests;
