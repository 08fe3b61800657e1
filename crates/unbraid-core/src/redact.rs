//! Replaces secrets in the errors that a server reports, before anything stores or prints them.

use std::{borrow::Cow, fmt, panic::RefUnwindSafe, sync::Arc};

use serde_json::{Map, Value};

use crate::{Update, limits::MAX_REDACTED_BYTES, node::to_value};

type Replace = dyn Fn(&str) -> String + Send + Sync + RefUnwindSafe;

/// Replaces secrets in what a server reports as an error.
///
/// Servers repeat in their errors what they received, including API keys. The core does not know the keys, so the sender of
/// the request provides a function that replaces them in a text. It is applied to every error of the server, and to the other
/// fields of its event, before they are stored. Thus no [`ServerError`](crate::ServerError) contains the secret: neither its
/// message, body, type and code, nor its `Display`, `Debug` and JSON. The text of choices is not changed.
///
/// Only the first [`MAX_REDACTED_BYTES`] bytes of an error that is passed to the function are kept.
///
/// # Examples
///
/// ```
/// use unbraid_core::{Config, Demux, Redact, StreamError};
///
/// let redact = Redact::new(|text| text.replace("sk-1234", "[key]"));
/// let mut demux = Demux::new(Config::default().with_redact(redact));
/// demux.feed(b"data: {\"error\":{\"message\":\"wrong key sk-1234\"}}\n\n");
/// let Some(Err(StreamError::Server(error))) = demux.closed() else { panic!() };
/// assert_eq!(error.message(), Some("wrong key [key]"));
/// assert_eq!(error.body()["error"]["message"], "wrong key [key]");
/// ```
#[derive(Clone, Default)]
pub struct Redact(Option<Arc<Replace>>);

impl Redact {
    /// Creates a redaction from a function that returns a text without its secrets.
    ///
    /// The function is called with each string of an error, and with the complete JSON of the error. So it also sees secrets
    /// that are escaped, or split over several strings.
    ///
    /// # Examples
    ///
    /// ```
    /// let redact = unbraid_core::Redact::new(|text| text.replace("sk-1234", "[key]"));
    /// assert_eq!(format!("{redact:?}"), "Redact(..)");
    /// ```
    #[must_use]
    pub fn new(replace: impl Fn(&str) -> String + Send + Sync + RefUnwindSafe + 'static) -> Self {
        Self(Some(Arc::new(replace)))
    }

    /// Combines two redactions. This one is applied first.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_core::Redact;
    ///
    /// let keys = Redact::new(|text| text.replace("sk-1234", "[key]"));
    /// let names = Redact::new(|text| text.replace("alice", "[name]"));
    /// let both = keys.and(names);
    /// # drop(both);
    /// ```
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self.0, other.0) {
            (Some(one), Some(other)) if Arc::ptr_eq(&one, &other) => Self(Some(one)),
            (Some(one), Some(other)) => Self::new(move |text| other(&one(text))),
            (one, other) => Self(one.or(other)),
        }
    }

    /// Returns the update without secrets, if it reports an error or does not belong to a completion: such an event may be an
    /// error in an unknown format. Returns `None` if nothing has to be replaced.
    pub(crate) fn update(&self, update: &Update<'_>) -> Option<Update<'static>> {
        let foreign = !update.is_chunk && update.choice.is_none();
        let replace = self.0.as_deref()?;
        if !foreign && update.error.is_none() {
            return None;
        }
        let mut redaction = Redaction::new(replace);
        let error = update.error.as_deref().and_then(|raw| redaction.json(raw));
        let fields = update.metadata.iter().enumerate();
        // The server chooses the name of an error's field as well as its value.
        let fields: Vec<_> = fields
            .filter_map(|(index, (key, raw))| {
                let (key, raw) = (redaction.replaced(key), redaction.json(raw));
                (key.is_some() || raw.is_some()).then_some((index, key, raw))
            })
            .collect();
        if error.is_none() && fields.is_empty() {
            return None;
        }
        let mut update = update.clone();
        update.error = error.map(Cow::Owned).or(update.error);
        for (index, key, raw) in fields {
            if let Some(field) = update.metadata.get_mut(index) {
                field.0 = key.map_or_else(|| field.0.clone(), Cow::Owned);
                field.1 = raw.map_or_else(|| field.1.clone(), Cow::Owned);
            }
        }
        Some(update.into_owned()) // after truncated texts were replaced, so that they are not copied
    }
}

/// Redacts one error, within a bound.
struct Redaction<'r> {
    replace: &'r Replace,
    /// How many more bytes are kept.
    remaining: usize,
}

impl<'r> Redaction<'r> {
    fn new(replace: &'r Replace) -> Self {
        Self {
            replace,
            remaining: MAX_REDACTED_BYTES,
        }
    }

    /// Redacts raw JSON. Returns `None` if it does not change.
    fn json(&mut self, raw: &str) -> Option<String> {
        let value = to_value(raw).unwrap_or_else(|| Value::from(self.truncate(raw)));
        if raw.len() > self.remaining {
            return Some(self.document(value).to_string()); // without a clone of up to 32 MiB
        }
        // The raw text is checked as well, because a `Value` keeps only the last one of equal keys.
        let same = (self.replace)(raw) == raw;
        let redacted = self.document(value.clone());
        (!same || redacted != value).then(|| redacted.to_string())
    }

    /// Redacts each string, which keeps the structure, and then the complete text, for a secret that is split over several
    /// strings.
    fn document(&mut self, value: Value) -> Value {
        let value = self.value(value);
        let json = value.to_string();
        match self.replaced(&json) {
            Some(text) => serde_json::from_str(&text).unwrap_or(Value::String(text)),
            None => value,
        }
    }

    fn value(&mut self, value: Value) -> Value {
        self.remaining = self.remaining.saturating_sub(1);
        match value {
            Value::String(text) => Value::String(self.string(&text)),
            Value::Number(number) => match self.replaced(&number.to_string()) {
                Some(text) => Value::String(text),
                None => Value::Number(number),
            },
            Value::Array(values) => {
                let mut kept = Vec::new();
                for value in values {
                    if self.remaining == 0 {
                        break;
                    }
                    kept.push(self.value(value));
                }
                Value::Array(kept)
            }
            Value::Object(fields) => {
                let mut kept = Map::new();
                for (key, value) in fields {
                    if self.remaining == 0 {
                        break;
                    }
                    let key = self.string(&key);
                    kept.insert(key, self.value(value));
                }
                Value::Object(kept)
            }
            Value::Null | Value::Bool(_) => value,
        }
    }

    fn string(&mut self, text: &str) -> String {
        let text = self.truncate(text);
        self.remaining = self.remaining.saturating_sub(text.len());
        (self.replace)(text)
    }

    /// Returns as much of a text as the bound permits.
    fn truncate<'t>(&self, text: &'t str) -> &'t str {
        let end = self.remaining.min(text.len());
        // A character has at most 4 bytes.
        let truncated = (0..4).find_map(|back| text.get(..end.saturating_sub(back)));
        truncated.unwrap_or_default()
    }

    fn replaced(&self, text: &str) -> Option<String> {
        let redacted = (self.replace)(text);
        (redacted != text).then_some(redacted)
    }
}

/// Two redactions are equal if they share the same function.
impl PartialEq for Redact {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (None, None) => true,
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (None, Some(_)) | (Some(_), None) => false,
        }
    }
}

impl Eq for Redact {}

/// Prints no details: the function contains the secrets.
impl fmt::Debug for Redact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Some(_) => "Redact(..)",
            None => "Redact(none)",
        })
    }
}

#[cfg(test)]
mod tests;
