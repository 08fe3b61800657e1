//! The envelope of a stream: its id, its model, its time of creation, and unknown fields.

use std::sync::Arc;

use crate::{
    BodyFormat, CompletionKind, Dialect, Update,
    limits::MAX_FIELDS,
    transcript::{is_void, merged},
};

/// The envelope of a completion, as far as it has arrived.
///
/// # Examples
///
/// ```
/// use unbraid_core::{Demux, Config};
///
/// let mut demux = Demux::new(Config::default());
/// demux.feed(b"data: {\"id\":\"c1\",\"model\":\"m\",\"choices\":[],\"service_tier\":\"flex\"}\n\n");
/// assert_eq!(demux.metadata().id.as_deref(), Some("c1"));
/// assert_eq!(&*demux.metadata().extra[0].1, "\"flex\"");
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metadata {
    /// The first id that is not empty (E16).
    pub id: Option<Arc<str>>,
    /// The last model that is not empty.
    pub model: Option<Arc<str>>,
    /// The first model. It differs from `model` if a router changed it within the stream.
    pub first_model: Option<Arc<str>>,
    /// The first time of creation that is not 0, in seconds since 1970.
    pub created: Option<u64>,
    /// Chat or text completion, by the first choice that appeared.
    pub kind: Option<CompletionKind>,
    /// Unknown fields of the envelope (`system_fingerprint`, `service_tier`, filter results ..) as raw JSON: the last value
    /// of each, and of those that are objects the last value of each of their fields.
    pub extra: Vec<(Arc<str>, Arc<str>)>,
    dialect: Option<Dialect>,
}

impl Metadata {
    /// Returns the dialect of the stream, once a value has identified it (D01 to D05).
    ///
    /// A stream with `choices` is [`Dialect::Chat`] or [`Dialect::Text`] by its first choice. `None` before that, and for
    /// merged sources whose dialects differ.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_core::{Config, Demux, Dialect};
    ///
    /// let mut demux = Demux::new(Config::default());
    /// demux.feed(b"data: {\"type\":\"message_start\",\"message\":{\"id\":\"m1\",\"role\":\"assistant\"}}\n\n");
    /// assert_eq!(demux.metadata().dialect(), Some(Dialect::Anthropic));
    /// ```
    #[must_use]
    pub fn dialect(&self) -> Option<Dialect> {
        let own = self.kind.map(|kind| match kind {
            CompletionKind::Chat => Dialect::Chat,
            CompletionKind::Text => Dialect::Text,
        });
        self.dialect.or(own)
    }

    /// Adds an update's envelope; true if the id differs from the first one.
    pub(crate) fn absorb(&mut self, update: &Update<'_>) -> bool {
        let mut changed = false;
        // A thread, its runs, their steps and messages have ids of their own.
        let has_several_ids = update.format == Some(BodyFormat::Assistants);
        match (&self.id, update.id.as_deref()) {
            (None, Some(id)) if !id.is_empty() => self.id = Some(id.into()),
            (Some(known), Some(id)) if !has_several_ids => {
                changed = !id.is_empty() && **known != *id
            }
            _ => {}
        }
        let model = update.model.as_deref().filter(|model| !model.is_empty());
        if model.is_some() && model != self.model.as_deref() {
            self.model = model.map(Arc::from);
            self.first_model = self.first_model.take().or_else(|| self.model.clone());
        }
        if self.created.is_none() {
            self.created = update.created.filter(|&created| created != 0);
        }
        self.dialect = self.dialect.or(update.dialect);
        if update.choice.is_some() {
            self.kind.get_or_insert(update.kind);
        } else {
            self.extras(update);
        }
        changed
    }

    fn extras(&mut self, update: &Update<'_>) {
        for (key, raw) in update.metadata.iter().filter(|(_, raw)| raw != "null") {
            let known = self.extra.iter_mut().find(|(known, _)| **known == **key);
            if let Some((_, value)) = known {
                if !is_void(raw) || is_void(value) {
                    *value = merged(value, raw).map_or_else(|| Arc::from(&**raw), Arc::from);
                }
            } else if self.extra.len() < MAX_FIELDS {
                self.extra.push((Arc::from(&**key), Arc::from(&**raw)));
            }
        }
    }
}
