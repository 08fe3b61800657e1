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
/// Encrypted blocks, and the parts and items of other dialects, arrive complete. A signature ends its block, so text or another
/// signature after it starts the next one.
fn continues(block: &Block, fragment: &Block) -> bool {
    let agrees = |name| match (block.get(name), fragment.get(name)) {
        (Some(known), Some(value)) => known == value,
        (None, _) | (_, None) => true,
    };
    let is_set = |value: Option<&Value>| value.is_some_and(|value| value != "");
    let is_signed = is_set(block.get("signature"));
    let has_other_signature = is_set(fragment.get("signature")) && !agrees("signature");
    let begins = has_other_signature || TEXTS.iter().any(|name| is_set(fragment.get(*name)));
    is_fragment(block)
        && is_fragment(fragment)
        && block.get("type") == fragment.get("type")
        && agrees("index")
        && agrees("id")
        && agrees("format")
        && !(is_signed && begins)
}

/// Whether a block may be one of several fragments: a text, or its signature.
fn is_fragment(fields: &Block) -> bool {
    let mut texts = TEXTS.iter().filter_map(|name| fields.get(*name));
    let is_text = match texts.next() {
        Some(text) => text.is_string(),
        None => fields.contains_key("signature"),
    };
    is_text && !fields.contains_key("thoughtSignature")
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
