//! Which call of its choice a fragment belongs to.

use unbraid_core::limits::MAX_TOOL_CALLS;

use super::json::{self, Span};

/// Numbers the calls of one choice: by their index on the wire, or in order of appearance if the server sends none.
#[derive(Debug, Clone, Default)]
pub(in crate::view) struct CallNumbers {
    /// The ids of the calls without an index, which are numbered by their position.
    ids: Vec<Option<String>>,
}

impl CallNumbers {
    /// The number of the call that a fragment belongs to; `None` for a value that is not a call.
    pub(super) fn number(&mut self, text: &[u8], fragment: &Span) -> Option<u32> {
        let object = json::object(text, fragment)?;
        let member = |name| json::member(text, &object, name);
        let index = member("index").filter(|value| json::is_set(text, value));
        if let Some(number) = index.and_then(|value| number(text, value)) {
            return Some(number);
        }
        let id = member("id").and_then(|id| json::string(text, id));
        let id = id.filter(|id| !id.is_empty());
        let known = id.as_ref().and_then(|id| {
            let mut ids = self.ids.iter();
            ids.position(|known| known.as_deref() == Some(&**id))
        });
        let function = member("function").or_else(|| member("custom"));
        let has_name = function
            .and_then(|function| json::object(text, function))
            .and_then(|function| {
                let name = json::member(text, &function, "name")?;
                Some(json::is_set(text, name))
            });
        let is_new = known.is_none() && (id.is_some() || has_name == Some(true));
        if (is_new || self.ids.is_empty()) && self.ids.len() < MAX_TOOL_CALLS {
            self.ids.push(id.map(|id| id.into_owned()));
        }
        let position = known.unwrap_or_else(|| self.ids.len().saturating_sub(1));
        u32::try_from(position).ok()
    }
}

/// An index as a number, a numeric string, or a number with an empty fraction.
fn number(text: &[u8], value: &Span) -> Option<u32> {
    let raw = match json::string(text, value) {
        Some(string) => string,
        None => String::from_utf8_lossy(json::bytes(text, value)),
    };
    let raw = raw.trim();
    raw.parse().ok().or_else(|| {
        let number: f64 = raw.parse().ok()?;
        let is_index = number.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&number);
        is_index.then_some(number as u32)
    })
}
