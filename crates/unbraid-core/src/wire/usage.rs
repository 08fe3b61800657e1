//! Usage.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use serde_json::value::RawValue;

use crate::{
    Usage,
    json_text::Json,
    usage::{Known, Reported, Source},
};

impl Usage {
    fn figures(&self) -> [(&'static str, Option<u64>); 3] {
        [
            ("prompt_tokens", self.prompt_tokens),
            ("completion_tokens", self.completion_tokens),
            ("total_tokens", self.total_tokens),
        ]
    }
}

/// The `usage` of a response: all fields that were reported, digit by digit, and the three figures of this value in their
/// places, estimated or not. Unknown usage is `null`.
///
/// The digits are kept only if `serde_json` writes text, as with [`Message`](crate::Message).
impl Serialize for Usage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = match self.raw_part() {
            Json::Object(fields) => fields,
            Json::Value(_) | Json::Raw(_) | Json::List(_) | Json::Joined(_) => Vec::new(),
        };
        for (name, figure) in self.figures() {
            let Some(figure) = figure else { continue };
            if self.raw.get(name).and_then(serde_json::Value::as_u64) == Some(figure) {
                continue;
            }
            fields.retain(|(key, _)| *key != name);
            fields.push((name.into(), Json::Value(figure.into())));
        }
        if fields.is_empty() {
            return serializer.serialize_unit();
        }
        Json::Object(fields).serialize(serializer)
    }
}

/// Usage as a server reports it, in one object; only from JSON, through `serde_json`. `null` is the usage without any figure.
///
/// What the wire does not have is lost: figures of single choices and prompts, and which figures were estimated.
impl<'de> Deserialize<'de> for Usage {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        if raw.get() == "null" {
            return Ok(Self::default());
        }
        if !raw.get().starts_with('{') {
            return Err(D::Error::custom("usage is not an object"));
        }
        let mut reported = Reported::default();
        reported.envelope(raw.get(), Source::Bare, None);
        Ok(reported.usage(&Known {
            received: &[],
            finished: true,
            choices_per_prompt: None,
        }))
    }
}

/// `prompt 5, completion 2, total 7 tokens (reported)`; a figure that is not known is `?`.
///
/// # Examples
///
/// ```
/// let mut usage = unbraid_core::Usage::default();
/// usage.prompt_tokens = Some(5);
/// assert_eq!(usage.to_string(), "prompt 5, completion ?, total ? tokens (absent)");
/// ```
impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [prompt, completion, total] = self.figures().map(|(_, figure)| Figure(figure));
        let source = self.source.as_str();
        write!(
            f,
            "prompt {prompt}, completion {completion}, total {total} tokens ({source})"
        )
    }
}

struct Figure(Option<u64>);

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(tokens) => write!(f, "{tokens}"),
            None => f.write_str("?"),
        }
    }
}
