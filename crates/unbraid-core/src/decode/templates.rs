//! Keeps the templates of one stream.
//!
//! Three invariants make a template exact. A chunk matches only if every byte outside the holes is equal, and the values
//! in the holes are valid. Each unknown field of the envelope is compared with its last value. A match is emitted as a
//! `TextDelta`, which has no envelope, only directly after another match with the same envelope, or after the chunk that made
//! a template with it.

use std::sync::Arc;

use super::{
    envelope::EnvelopeMemo,
    json_bytes::unescape,
    template::{Line, MatchBuffers, Provided, Template, TemplateMatch},
};
use crate::{
    ChoiceIndex,
    json_text::common_len,
    prefetch::prefetch_bytes,
    text_delta::{DeltaKind, UpdateSink},
};

/// Chunks of a stream take a few forms in turn: text, reasoning, and the arguments of some tool calls.
const MAX_TEMPLATES: usize = 8;

/// The templates of a stream.
#[derive(Debug, Default)]
#[repr(C)]
pub(super) struct Templates {
    templates: Vec<Template>,
    /// The length of the prefix that all templates share. One comparison of it rules them all out.
    common_len: usize,
    /// The template that matched last, which is tried first.
    latest: usize,
    /// The text of a template, which can be loaded from here without the template, and the number of the template.
    prefetched: Option<(usize, Arc<str>)>,
    /// The envelope of the last event, if that event matched or made a template, so that consumers already have it.
    last_envelope: Option<u64>,
    hits: u64,
    /// How many templates were built since one last matched. In some streams no two chunks are alike.
    misses: u32,
    /// Whether the last update of a match had a time of creation. The first one counts, so later ones change nothing.
    has_created: bool,
    /// Whether any template has holes that the scanner has to read.
    has_values: bool,
    /// Whether any template has a name.
    has_names: bool,
    /// Whether a chunk without a text has arrived that could have been learned.
    has_seen_textless: bool,
    scratch: Scratch,
    /// The number of envelopes that the templates had so far.
    envelopes: u64,
    /// The number of templates so far.
    inserted: u64,
    buffers: MatchBuffers,
}

/// The choice and the text that a chunk continues.
pub(super) struct TextTarget<'t> {
    pub(super) choice: u32,
    pub(super) text_kind: DeltaKind,
    pub(super) text: &'t str,
    /// What the dialect says of the event, if it is not a chunk.
    pub(super) provided: Option<&'t Provided>,
}

impl Templates {
    /// Matches the start of the data with the templates.
    #[inline(always)]
    pub(super) fn find<'t>(&mut self, data: &'t [u8]) -> Option<TemplateMatch<'t>> {
        let latest = self.templates.get(self.latest)?;
        if !latest.starts_with_head(data, self.common_len) {
            return None;
        }
        // Nearly always the latest template matches again. Remembering one per choice was measured and gained nothing
        // (docs/performance.md).
        let (common_len, number) = (self.common_len, self.latest);
        let found = if latest.has_values() {
            latest.match_values(&Line::new(data), common_len, number, &mut self.buffers)
        } else {
            latest.match_start(data, common_len, number)
        };
        found.or_else(|| self.find_other(data))
    }

    #[inline(never)]
    fn find_other<'t>(&mut self, data: &'t [u8]) -> Option<TemplateMatch<'t>> {
        let Self {
            templates,
            buffers,
            common_len,
            latest,
            has_values,
            ..
        } = self;
        if !*has_values {
            let mut others = (0..)
                .zip(&*templates)
                .filter(|(number, _)| number != latest);
            return others.find_map(|(n, template)| template.match_start(data, *common_len, n));
        }
        let line = Line::new(data);
        let mut others = (0..)
            .zip(&*templates)
            .filter(|(number, _)| number != latest);
        others.find_map(|(number, template)| {
            if template.has_values() {
                template.match_values(&line, *common_len, number, buffers)
            } else {
                template.match_start(data, *common_len, number)
            }
        })
    }

    /// Loads what the next event most likely needs.
    #[inline]
    pub(super) fn prefetch(&mut self) {
        match &self.prefetched {
            Some((number, text)) if *number == self.latest => prefetch_bytes(text.as_bytes()),
            _ => self.keep_prefetched(),
        }
        if let Some(template) = self.templates.get(self.latest) {
            template.prefetch();
        }
    }

    /// Keeps the text of the latest template for the next call.
    #[cold]
    fn keep_prefetched(&mut self) {
        let latest = self.templates.get(self.latest);
        self.prefetched = latest.map(|template| (self.latest, Arc::clone(template.text())));
    }

    /// Emits a match if the caller accepts it: as a text delta if the sink takes these and the delta says everything.
    #[inline]
    pub(super) fn emit<T: UpdateSink + ?Sized>(
        &mut self,
        found: &TemplateMatch<'_>,
        event_index: u64,
        envelope: &mut EnvelopeMemo,
        sink: &mut T,
        accepts: impl FnOnce(TextTarget<'_>) -> bool,
    ) -> bool {
        let number = found.template;
        let Some(template) = self.templates.get_mut(number) else {
            return false;
        };
        let (choice, text_kind) = (template.choice(found), template.text_kind());
        // The text is decoded before anything is counted, so that a declined match leaves no trace.
        let Some(text) = self.scratch.text_of(found) else {
            return false;
        };
        let target = TextTarget {
            choice,
            text_kind,
            text,
            provided: template.provided(),
        };
        if !accepts(target) {
            return false;
        }
        self.latest = number;
        self.misses = 0;
        self.hits += 1;
        let event_index = event_index.into();
        // A delta has no envelope. The first match after another event is therefore an update.
        let last_envelope = self.last_envelope.replace(template.envelope);
        let is_delta = template.is_text_only()
            && last_envelope == Some(template.envelope)
            && (self.has_created || !template.varies_created(found))
            && sink.takes_text_deltas();
        let delta = template.text_delta(event_index, ChoiceIndex(choice), text);
        if is_delta && template.is_constant(envelope.version()) {
            sink.text_delta(&delta);
            return true;
        }
        if is_delta && template.is_text_with_usage() {
            template.emit_with_usage(found, &delta, sink);
            return true;
        }
        let (created, is_known) =
            template.emit(found, &delta, is_delta, envelope, &mut self.buffers, sink);
        self.has_created = created.is_some_and(|created| created != 0);
        template.known_version = is_known.then(|| envelope.version());
        true
    }

    /// Notes that the event that was emitted last made the latest template, so that consumers have its envelope.
    pub(super) fn continue_latest(&mut self) {
        if let Some(template) = self.templates.get(self.latest) {
            self.last_envelope = Some(template.envelope);
            self.has_created = template.has_created();
        }
    }

    /// Notes that no template matched an event.
    pub(super) fn interrupt(&mut self) {
        self.last_envelope = None;
    }

    /// Whether a chunk should become a template: only rarely in a stream where templates never match.
    pub(super) fn should_learn(&mut self, text: &str) -> bool {
        /// The text is kept once for each template, so longer chunks get none.
        const MAX_CHUNK_BYTES: usize = 16 * 1024;
        const MAX_MISSES: u32 = 16;
        const RETRY_INTERVAL: u32 = 64;
        if text.len() > MAX_CHUNK_BYTES {
            return false;
        }
        // In a stream whose chunks have ever other keys no template matches. After some misses it pays for one only now
        // and then, in case the stream changes.
        self.misses = self.misses.wrapping_add(1);
        self.misses <= MAX_MISSES || self.misses.is_multiple_of(RETRY_INTERVAL)
    }

    /// Notes a chunk without a text that could be learned; false for the first one. Most servers begin a choice with such a
    /// chunk and send no other one, and some repeat it again and again.
    pub(super) fn repeats_textless(&mut self) -> bool {
        std::mem::replace(&mut self.has_seen_textless, true)
    }

    /// Inserts a template. One of the same keys is replaced, with holes where the two differ.
    pub(super) fn insert(&mut self, mut template: Template) {
        let known = self
            .templates
            .iter()
            .position(|known| template.generalise(known));
        template.cut_holes();
        if let Some(known) = known {
            self.templates.remove(known);
        } else if self.templates.len() >= MAX_TEMPLATES {
            self.templates.remove(0);
        }
        let mut others = self.templates.iter();
        let sharing = others.find(|other| other.shares_envelope(&template));
        template.envelope = sharing.map_or(self.envelopes, |other| other.envelope);
        self.envelopes += u64::from(sharing.is_none());
        self.inserted += 1;
        template.set_form(self.inserted);
        self.latest = self.templates.len();
        self.prefetched = None; // the numbers have changed
        self.templates.push(template);
        self.common_len = self.shared_head_len();
        self.has_values = self.templates.iter().any(Template::has_values);
        self.has_names = self.templates.iter().any(|known| known.name().is_some());
    }

    /// The name of the events that the latest template matches.
    #[inline]
    pub(super) fn usual_name(&self) -> Option<&[u8]> {
        if !self.has_names {
            return None;
        }
        self.templates.get(self.latest)?.name()
    }

    fn shared_head_len(&self) -> usize {
        let mut heads = self.templates.iter().map(Template::head);
        let first = heads.next().unwrap_or_default();
        // The shared part of the heads is compared once, and not once for each template.
        let shared_len = |head: &[u8]| common_len(first, head);
        heads.map(shared_len).min().unwrap_or(first.len())
    }

    /// How many events matched.
    pub(super) fn hits(&self) -> u64 {
        self.hits
    }
}

/// Buffers for texts that cannot be borrowed from the read.
#[derive(Debug, Default)]
struct Scratch {
    unescaped: Vec<u8>,
    short: ShortText,
}

/// Sixteen aligned bytes, which the standard library checks to be ASCII in one step.
///
/// Most deltas are shorter. Without the alignment they would be checked byte by byte, in a loop whose length the
/// processor cannot predict.
#[derive(Debug, Default)]
#[repr(align(16))]
struct ShortText([u8; 16]);

impl Scratch {
    /// The text in a hole; `None` if a slower path has to decode it.
    #[inline]
    fn text_of<'t>(&'t mut self, found: &TemplateMatch<'t>) -> Option<&'t str> {
        // With escapes the text has to be copied anyway, so the block does not help.
        if found.has_escapes {
            unescape(found.text, &mut self.unescaped)?;
            return std::str::from_utf8(&self.unescaped).ok();
        }
        match found.block {
            Some(block) if self.short.is_ascii(block, found.text.len()) => {
                std::str::from_utf8(&self.short.0)
                    .ok()?
                    .get(..found.text.len())
            }
            _ => std::str::from_utf8(found.text).ok(),
        }
    }
}

impl ShortText {
    /// Copies the first bytes of a block; returns whether all of them are ASCII.
    #[inline]
    fn is_ascii(&mut self, block: &[u8; 16], length: usize) -> bool {
        const HIGH: u128 = u128::from_ne_bytes([0x80; 16]);
        let after_text = u128::MAX.checked_shl(8 * length as u32).unwrap_or(0);
        let text = u128::from_le_bytes(*block) & !after_text;
        self.0 = text.to_le_bytes();
        text & HIGH == 0
    }
}
