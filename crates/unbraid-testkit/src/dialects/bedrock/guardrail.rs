//! What a guardrail did, in fields beside those of the model (B18).

use super::{Answer, WireValue, entries};

/// Adds the fields of each chunk to the choice that the chunk has a part of, or else to the first choice without a reason so
/// far, or else to the answer. `read` reads the first chunks of the stream.
pub(super) fn add(
    answer: &mut Answer,
    chunks: &[WireValue],
    read: impl Fn(&[WireValue]) -> Answer,
) {
    for (position, WireValue { value, .. }) in chunks.iter().enumerate() {
        let mut keys = value.as_object().into_iter().flatten().map(|(key, _)| key);
        if !keys.any(|key| key.starts_with("amazon-bedrock-")) {
            continue;
        }
        let before = read(&chunks[..position]);
        let after = read(&chunks[..=position]);
        let open = |known: &Answer, index: &u32| {
            known
                .choices
                .get(index)
                .is_some_and(|choice| choice.finish_reason.is_none())
        };
        let has_own = ["choices", "outputs", "generations"]
            .iter()
            .any(|list| !entries(&value[*list]).is_empty());
        // A choice that begins here, or that this chunk ends, belongs to it.
        let mut candidates = after.choices.keys().copied().filter(|index| {
            !before.choices.contains_key(index) || open(&before, index) || open(&after, index)
        });
        let own = match value["index"].as_u64() {
            Some(index) if value.get("is_finished").is_some() => Some(index as u32),
            _ if has_own => entries(&value["choices"]).first().map_or(Some(0), |entry| {
                Some(entry["index"].as_u64().unwrap_or(0) as u32)
            }),
            _ if value.get("metadata").is_some() => None,
            _ if value["type"] == "message_stop" => Some(0), // its reason came before, and counts from here on (A03)
            _ => candidates.next(),
        };
        for (key, value) in value.as_object().into_iter().flatten() {
            if !key.starts_with("amazon-bedrock-")
                || key == "amazon-bedrock-invocationMetrics"
                || value.is_null()
            {
                continue;
            }
            let choice = own.and_then(|index| answer.choices.get_mut(&index));
            let fields = choice.map_or(&mut answer.guardrail, |choice| &mut choice.guardrail);
            fields.insert(key.clone(), value.clone());
        }
    }
}
