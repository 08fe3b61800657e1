//! A chunk's way into updates, and what of its envelope is news.

use std::borrow::Cow;

use super::{
    Decoder, Way,
    chunk::{Chunk, Element},
    scan,
};
use crate::{
    Update, Warning,
    frame::{Frame, FrameKind},
    piece::Take,
};

/// Collects an event's updates, holding one back so that the last one can be marked.
pub(super) struct Out<'a, 's> {
    pub(super) at: u64,
    held: Option<Update<'a>>,
    warnings: Vec<Warning>,
    pub(super) recognised: bool,
    pub(super) done: bool,
    /// Why strict mode refuses the event, where that is not its JSON.
    pub(super) refusal: Option<&'static str>,
    sink: &'s mut dyn Take,
}

impl<'a, 's> Out<'a, 's> {
    pub(super) fn new(at: u64, sink: &'s mut dyn Take) -> Self {
        Self {
            at,
            held: None,
            warnings: Vec::new(),
            recognised: false,
            done: false,
            refusal: None,
            sink,
        }
    }

    pub(super) fn push(&mut self, mut update: Update<'a>) {
        update.at = self.at;
        let mut warnings = std::mem::take(&mut self.warnings);
        warnings.append(&mut update.warnings);
        update.warnings = warnings;
        if let Some(ready) = self.held.replace(update) {
            self.sink.update(&ready);
        }
    }

    pub(super) fn warn(&mut self, code: &'static str, message: impl Into<Cow<'static, str>>) {
        self.warnings.push(Warning::new(code, self.at, message));
    }

    pub(super) fn finish(mut self) {
        let pending = self.held.is_none() || !self.warnings.is_empty() || self.done;
        if pending {
            let done = self.done;
            self.push(Update {
                done,
                ..Update::default()
            });
        }
        if let Some(mut last) = self.held.take() {
            last.last = true;
            last.recognised |= self.recognised;
            self.sink.update(&last);
        }
    }
}

impl Decoder {
    /// Whether the event is an ordinary chunk, or foreign JSON that is as simple; then it is told.
    pub(super) fn scans(&mut self, frame: &Frame<'_>, sink: &mut dyn Take) -> bool {
        let named = matches!(frame.event, Some(b"error" | b"ping"));
        // Strict mode has to see every field.
        if self.way != Way::First || self.strict || named || frame.kind != FrameKind::Event {
            return false;
        }
        let Ok(text) = std::str::from_utf8(frame.data) else {
            return false;
        };
        let Some(mut chunk) = scan::chunk(text, self.depth, &self.reasoning) else {
            return false;
        };
        chunk.extra.retain(|(key, raw)| self.is_news(key, raw));
        let news = chunk.usage.is_some() || !chunk.extra.is_empty();
        if !chunk.extra.is_empty() {
            self.templates.forget(); // they stand for the fields as they were told before
        }
        if !news {
            let template = self.templates.learn(text, &chunk);
            self.templates.keep(template);
        }
        self.tell_scanned(chunk, news, sink);
        self.at += 1;
        self.scanned += 1;
        true
    }

    /// As [`emit`](Self::emit) for a chunk of which nothing has to be held back: its updates are told where they stand.
    fn tell_scanned(&mut self, mut chunk: Chunk<'_>, news: bool, sink: &mut dyn Take) {
        chunk.place(self.at);
        let mut left = chunk.elements.len();
        let bare = news || left == 0;
        for element in &mut chunk.elements {
            self.settle_reasoning(element);
            element.settle();
            left -= 1;
            let update = &mut element.update;
            update.at = self.at;
            update.last = left == 0 && !bare;
            update.id.clone_from(&chunk.id);
            update.created = chunk.created;
            update.model.clone_from(&chunk.model);
            update.recognised = true;
            sink.update(update);
        }
        if bare {
            sink.update(&Update {
                at: self.at,
                last: true,
                id: chunk.id,
                created: chunk.created,
                model: chunk.model,
                usage: chunk.usage,
                metadata: chunk.extra,
                format: chunk.format,
                recognised: chunk.has_choices,
                ..Update::default()
            });
        }
    }

    /// Tells a chunk's updates; true if its envelope brought something new.
    pub(super) fn emit<'a>(&mut self, mut chunk: Chunk<'a>, out: &mut Out<'a, '_>) -> bool {
        chunk.place(out.at);
        out.warnings.append(&mut chunk.warnings);
        out.recognised |= chunk.has_choices || chunk.error.is_some();
        for mut element in std::mem::take(&mut chunk.elements) {
            self.settle_reasoning(&mut element);
            let mut update = element.into_update();
            update.id = chunk.id.clone();
            update.created = chunk.created;
            update.model = chunk.model.clone();
            update.recognised = true;
            out.push(update);
        }
        chunk.extra.retain(|(key, raw)| self.is_news(key, raw));
        let news = chunk.usage.is_some() || chunk.error.is_some() || !chunk.extra.is_empty();
        if !chunk.extra.is_empty() {
            self.templates.forget(); // they stand for the fields as they were told before
        }
        if news || out.held.is_none() {
            out.push(Update {
                id: chunk.id,
                created: chunk.created,
                model: chunk.model,
                usage: chunk.usage,
                error: chunk.error,
                metadata: chunk.extra,
                format: chunk.format,
                recognised: out.recognised,
                ..Update::default()
            });
        }
        news
    }

    fn is_news(&mut self, key: &str, raw: &str) -> bool {
        const KEPT: usize = 32; // a foreign envelope has a dozen fields; beyond that each is told again
        let Some((_, value)) = self.memo.iter_mut().find(|(known, _)| **known == *key) else {
            if self.memo.len() < KEPT {
                self.memo.push((key.into(), raw.into()));
            }
            return true;
        };
        let news = *value != raw;
        if news {
            raw.clone_into(value);
        }
        news
    }

    fn settle_reasoning(&mut self, element: &mut Element<'_>) {
        const KEPT: usize = crate::limits::MAX_CHOICES;
        let index = element.update.choice_index.map_or(0, |index| index.0);
        if element.update.reasoning_update.is_none() {
            return;
        }
        let plain = self.plain_reasoning.contains(&index);
        if element.details_only && plain {
            element.update.reasoning_update = None;
        } else if !element.details_only && !plain && self.plain_reasoning.len() < KEPT {
            self.plain_reasoning.push(index);
        }
    }
}
