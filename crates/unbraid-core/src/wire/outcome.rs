//! Outcomes, and the envelope of a stream.

use serde::{Serialize, Serializer};
use serde_json::json;

use super::without_nulls;
use crate::{ChoiceOutcome, Metadata, aggregate, json_text::Json};

/// An entry of `choices`: `index`, `message` and `finish_reason`, then how the choice ended: `end`, and `error` and
/// `warnings` if there are any, and then the unknown fields of other names.
impl Serialize for ChoiceOutcome {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let warnings = (!self.warnings.is_empty()).then_some(&self.warnings);
        let mut fields = Json::fields(json!({ "index": self.choice }));
        fields.push(("message".into(), aggregate::message_json(&self.message)));
        fields.extend(Json::fields(json!({
            "finish_reason": self.finish_reason,
            "end": self.end.as_str(),
            "error": self.end.cause(),
            "warnings": warnings,
        })));
        let unknown = self.extra.iter();
        let unknown = unknown.filter(|(key, _)| fields.iter().all(|(name, _)| *name != **key));
        let unknown: Vec<_> = unknown.collect();
        aggregate::add_unknown_fields(&mut fields, unknown.into_iter());
        without_nulls(Json::Object(fields)).serialize(serializer)
    }
}

/// The fields of a response beside its choices and its usage: `id`, `object`, `created`, `model`, and the unknown ones.
impl Serialize for Metadata {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        without_nulls(Json::Object(aggregate::envelope(self))).serialize(serializer)
    }
}
