//! A chunk's way into updates, and what of its envelope is news.

use std::{
    hash::{BuildHasher, RandomState},
    sync::OnceLock,
};

use super::{
    Decoder, Out, Way,
    chunk::{Chunk, Element},
    scan,
};
use crate::{
    Update,
    frame::{Frame, FrameKind},
    limits::MAX_NAME_BYTES,
    text_delta::UpdateSink,
};

/// A field's last value. Of a long one only its hash is kept: it may be as long as an event.
#[derive(Debug, PartialEq)]
pub(super) enum Known {
    Text(String),
    Hash(usize, u64),
}

impl Known {
    fn new(raw: &str) -> Self {
        const LONG: usize = 4096;
        /// One for each process, so that nobody can choose two values that are taken for one.
        static KEYS: OnceLock<RandomState> = OnceLock::new();
        if raw.len() <= LONG {
            return Self::Text(raw.to_owned());
        }
        let keys = KEYS.get_or_init(RandomState::new);
        Self::Hash(raw.len(), keys.hash_one(raw))
    }

    /// Keeps another value; whether it is one.
    fn update(&mut self, raw: &str) -> bool {
        if matches!(self, Self::Text(known) if known == raw) {
            return false;
        }
        let new = Self::new(raw);
        let changed = *self != new;
        *self = new;
        changed
    }
}

/// Drops a long id or model: each update of the chunk carries a copy.
pub(super) fn drop_long_names(chunk: &mut Chunk<'_>) {
    for name in [&mut chunk.id, &mut chunk.model] {
        if name
            .as_ref()
            .is_some_and(|name| name.len() > MAX_NAME_BYTES)
        {
            *name = None;
        }
    }
}

impl Decoder {
    /// Whether the event is an ordinary chunk, or foreign JSON that is as simple; then it is told.
    pub(super) fn scans(&mut self, frame: &Frame<'_>, sink: &mut dyn UpdateSink) -> bool {
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
        drop_long_names(&mut chunk);
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
    fn tell_scanned(&mut self, mut chunk: Chunk<'_>, news: bool, sink: &mut dyn UpdateSink) {
        chunk.place(self.at);
        let mut left = chunk.elements.len();
        let bare = news || left == 0;
        for element in &mut chunk.elements {
            self.settle_reasoning(element);
            element.settle();
            left -= 1;
            let update = &mut element.update;
            update.event_index = self.at.into();
            update.last_of_event = left == 0 && !bare;
            update.id.clone_from(&chunk.id);
            update.created = chunk.created;
            update.model.clone_from(&chunk.model);
            update.is_chunk = true;
            sink.update(update);
        }
        if bare {
            sink.update(&Update {
                event_index: self.at.into(),
                last_of_event: true,
                id: chunk.id,
                created: chunk.created,
                model: chunk.model,
                usage: chunk.usage,
                metadata: chunk.extra,
                format: chunk.format,
                is_chunk: chunk.has_choices,
                ..Update::default()
            });
        }
    }

    /// Tells a chunk's updates; true if its envelope brought something new.
    pub(super) fn emit<'a>(&mut self, mut chunk: Chunk<'a>, out: &mut Out<'a, '_>) -> bool {
        drop_long_names(&mut chunk);
        chunk.place(out.at);
        out.warnings.append(&mut chunk.warnings);
        let bare = chunk.elements.is_empty();
        out.is_chunk |= chunk.has_choices || chunk.error.is_some();
        for mut element in std::mem::take(&mut chunk.elements) {
            self.settle_reasoning(&mut element);
            let mut update = element.into_update();
            update.id = chunk.id.clone();
            update.created = chunk.created;
            update.model = chunk.model.clone();
            update.is_chunk = true;
            if out.admits(&mut update) {
                out.push(update);
            }
        }
        chunk.extra.retain(|(key, raw)| self.is_news(key, raw));
        let news = chunk.usage.is_some() || chunk.error.is_some() || !chunk.extra.is_empty();
        if !chunk.extra.is_empty() {
            self.templates.forget(); // they stand for the fields as they were told before
        }
        if (news || bare || out.held.is_none()) && out.admits_other() {
            out.push(Update {
                id: chunk.id,
                created: chunk.created,
                model: chunk.model,
                usage: chunk.usage,
                error: chunk.error,
                metadata: chunk.extra,
                format: chunk.format,
                is_chunk: out.is_chunk,
                ..Update::default()
            });
        }
        news
    }

    fn is_news(&mut self, key: &str, raw: &str) -> bool {
        const KEPT: usize = 32; // a foreign envelope has a dozen fields; beyond that each is told again
        const LONG: usize = 1024;
        if key.len() > LONG {
            return true;
        }
        let Some((_, value)) = self.memo.iter_mut().find(|(known, _)| **known == *key) else {
            if self.memo.len() < KEPT {
                self.memo.push((key.into(), Known::new(raw)));
            }
            return true;
        };
        value.update(raw)
    }

    fn settle_reasoning(&mut self, element: &mut Element<'_>) {
        const KEPT: usize = crate::limits::MAX_CHOICES;
        let index = element.update.choice.map_or(0, |index| index.0);
        if element.update.reasoning.is_none() {
            return;
        }
        let plain = self.plain_reasoning.contains(&index);
        if element.details_only && plain {
            element.update.reasoning = None;
        } else if !element.details_only && !plain && self.plain_reasoning.len() < KEPT {
            self.plain_reasoning.push(index);
        }
    }
}
