//! Joins the fragments of streamed reasoning to the blocks that the provider expects back.

use serde_json::{Map, Value};

type Block = Map<String, Value>;

/// The fields of a block whose text arrives in fragments.
const TEXTS: [&str; 3] = ["text", "summary", "thinking"];

/// Joins consecutive fragments of the same block. Anything else stays as it is, without its null fields.
pub(super) fn join(fragments: Vec<Value>) -> Vec<Value> {
    let mut blocks: Vec<Value> = Vec::new();
    for fragment in fragments {
        let Value::Object(fragment) = fragment else {
            blocks.push(fragment);
            continue;
        };
        let fragment: Block = fragment
            .into_iter()
            .filter(|(_, value)| !value.is_null())
            .collect();
        match blocks.last_mut() {
            Some(Value::Object(block)) if continues(block, &fragment) => append(block, fragment),
            _ => blocks.push(fragment.into()),
        }
    }
    blocks
}

/// Whether a fragment continues a block: it has the same type, and the same index and id unless it names none.
///
/// Encrypted blocks arrive complete. A signature ends its block, so text after it starts another one.
fn continues(block: &Block, fragment: &Block) -> bool {
    let has_text = |fields: &Block| TEXTS.iter().any(|name| fields.contains_key(*name));
    let is_text = |fields: &Block| has_text(fields) || fields.contains_key("signature");
    let agrees = |name| match (block.get(name), fragment.get(name)) {
        (Some(known), Some(value)) => known == value,
        (None, _) | (_, None) => true,
    };
    let is_signed = block
        .get("signature")
        .is_some_and(|signature| signature != "");
    is_text(block)
        && is_text(fragment)
        && block.get("type") == fragment.get("type")
        && agrees("index")
        && agrees("id")
        && agrees("format")
        && !(is_signed
            && TEXTS
                .iter()
                .any(|name| fragment.get(*name).is_some_and(|text| text != "")))
}

/// Appends the texts. Of any other field the last value counts, except an empty one.
fn append(block: &mut Block, fragment: Block) {
    for (name, value) in fragment {
        let is_text = TEXTS.contains(&&*name);
        match (block.get_mut(&name), value) {
            (Some(Value::String(text)), Value::String(more)) if is_text => text.push_str(&more),
            (Some(_), Value::String(more)) if more.is_empty() => {}
            (_, value) => {
                block.insert(name, value);
            }
        }
    }
}
