//! A request as the JSON that it was made of: a conversation that is stored and continued later.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use serde_json::Value;

use super::Request;

/// The fields as they were given, in their order, without the two that are only [sent](Request::body). How choices are
/// requested, whether usage is asked for and how replies are written are settings of the program, and not part of it: set them
/// again after reading.
impl Serialize for Request {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.fields.serialize(serializer)
    }
}

/// Any object, as [`Request::from_value`] takes it: unknown fields, also those of messages, are kept in their order.
impl<'de> Deserialize<'de> for Request {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        Self::from_value(value).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests;
