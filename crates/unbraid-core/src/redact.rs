//! What is replaced in the errors that a server reports, before anything keeps or prints them.

use std::{borrow::Cow, fmt, panic::RefUnwindSafe, sync::Arc};

use serde_json::{Map, Value};

use crate::{Update, limits::MAX_REDACTED_BYTES, node::to_value};

type Replace = dyn Fn(&str) -> String + Send + Sync + RefUnwindSafe;

/// Replaces secrets in what a server reports as an error.
///
/// Servers repeat in their errors what they were sent, API keys included. The core knows no keys, so whoever sends them
/// gives a function that replaces them in a text. It is applied to every error of the server, and to the other fields of its
/// event, before they are kept: so the secret is in no [`ServerError`](crate::ServerError), neither in its message nor in its
/// body, type, code, `Display` or `Debug`, and in no JSON that is made of it. The text of answers is not changed.
///
/// Of an error that is passed through it the first [`MAX_REDACTED_BYTES`] bytes are kept.
///
/// # Examples
///
/// ```
/// use unbraid_core::{Demux, Config, Redact, StreamError};
///
/// let redact = Redact::new(|text| text.replace("sk-1234", "[key]"));
/// let mut demux = Demux::new(Config { redact, ..Config::default() });
/// demux.feed(b"data: {\"error\":{\"message\":\"wrong key sk-1234\"}}\n\n");
/// let Some(Err(StreamError::Server(error))) = demux.closed() else { panic!() };
/// assert_eq!(error.message(), Some("wrong key [key]"));
/// assert_eq!(error.body()["error"]["message"], "wrong key [key]");
/// ```
#[derive(Clone, Default)]
pub struct Redact(Option<Arc<Replace>>);

impl Redact {
    /// A redaction by a function that gives a text without the secrets in it.
    ///
    /// It is called with each text of an error, and with an error's JSON as a whole, so that it also sees secrets that are
    /// escaped or split.
    #[must_use]
    pub fn new(replace: impl Fn(&str) -> String + Send + Sync + RefUnwindSafe + 'static) -> Self {
        Self(Some(Arc::new(replace)))
    }

    /// Both of them, this one first.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self.0, other.0) {
            (Some(one), Some(other)) if Arc::ptr_eq(&one, &other) => Self(Some(one)),
            (Some(one), Some(other)) => Self::new(move |text| other(&one(text))),
            (one, other) => Self(one.or(other)),
        }
    }

    /// The update without secrets, if it reports an error or is no part of a completion: what is neither may be an error in
    /// a shape that nobody knows. `None` if nothing has to be replaced.
    #[doc(hidden)]
    #[must_use]
    pub fn update(&self, update: &Update<'_>) -> Option<Update<'static>> {
        let foreign = !update.is_chunk && update.choice.is_none();
        let replace = self.0.as_deref()?;
        if !foreign && update.error.is_none() {
            return None;
        }
        let mut pass = Pass::new(replace);
        let error = update.error.as_deref().and_then(|raw| pass.json(raw));
        let fields = update.metadata.iter().enumerate();
        // The key of an error's field is as much of the server's choosing as its value.
        let fields: Vec<_> = fields
            .filter_map(|(at, (key, raw))| {
                let (key, raw) = (pass.replaced(key), pass.json(raw));
                (key.is_some() || raw.is_some()).then_some((at, key, raw))
            })
            .collect();
        if error.is_none() && fields.is_empty() {
            return None;
        }
        let mut update = update.clone();
        update.error = error.map(Cow::Owned).or(update.error);
        for (at, key, raw) in fields {
            if let Some(field) = update.metadata.get_mut(at) {
                field.0 = key.map_or_else(|| field.0.clone(), Cow::Owned);
                field.1 = raw.map_or_else(|| field.1.clone(), Cow::Owned);
            }
        }
        Some(update.into_owned()) // what was cut is not copied first
    }
}

/// One error on its way through the function, with what is left of its bound.
struct Pass<'r> {
    replace: &'r Replace,
    left: usize,
}

impl<'r> Pass<'r> {
    fn new(replace: &'r Replace) -> Self {
        Self {
            replace,
            left: MAX_REDACTED_BYTES,
        }
    }

    /// Raw JSON without secrets; `None` if it stays as it is.
    fn json(&mut self, raw: &str) -> Option<String> {
        let value = to_value(raw).unwrap_or_else(|| Value::from(self.cut(raw)));
        if raw.len() > self.left {
            return Some(self.whole(value).to_string()); // without a copy of what may be 32 MiB
        }
        // Of equal keys a `Value` holds the last one only.
        let same = (self.replace)(raw) == raw;
        let redacted = self.whole(value.clone());
        (!same || redacted != value).then(|| redacted.to_string())
    }

    /// Text by text, so that the shape stays; then as a whole, for a secret that lies across several of them.
    fn whole(&mut self, value: Value) -> Value {
        let value = self.value(value);
        let json = value.to_string();
        match self.replaced(&json) {
            Some(text) => serde_json::from_str(&text).unwrap_or(Value::String(text)),
            None => value,
        }
    }

    fn value(&mut self, value: Value) -> Value {
        self.left = self.left.saturating_sub(1);
        match value {
            Value::String(text) => Value::String(self.text(&text)),
            Value::Number(number) => match self.replaced(&number.to_string()) {
                Some(text) => Value::String(text),
                None => Value::Number(number),
            },
            Value::Array(values) => {
                let mut kept = Vec::new();
                for value in values {
                    if self.left == 0 {
                        break;
                    }
                    kept.push(self.value(value));
                }
                Value::Array(kept)
            }
            Value::Object(fields) => {
                let mut kept = Map::new();
                for (key, value) in fields {
                    if self.left == 0 {
                        break;
                    }
                    let key = self.text(&key);
                    kept.insert(key, self.value(value));
                }
                Value::Object(kept)
            }
            Value::Null | Value::Bool(_) => value,
        }
    }

    fn text(&mut self, text: &str) -> String {
        let text = self.cut(text);
        self.left = self.left.saturating_sub(text.len());
        (self.replace)(text)
    }

    /// As much of a text as the bound leaves.
    fn cut<'t>(&self, text: &'t str) -> &'t str {
        let end = self.left.min(text.len());
        let cut = (0..4).find_map(|back| text.get(..end.saturating_sub(back)));
        cut.unwrap_or_default()
    }

    fn replaced(&self, text: &str) -> Option<String> {
        let redacted = (self.replace)(text);
        (redacted != text).then_some(redacted)
    }
}

/// Two are equal if they are the same function.
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

/// By hand: what the function holds is secret.
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
