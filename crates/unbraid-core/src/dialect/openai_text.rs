//! Text completions: `choices[].text` (M1). The log probabilities are parallel lists; the rest is as in chat.

use super::openai_chat::fragment;
use crate::{
    CompletionKind,
    decode::{
        chunk::{Element, some_text},
        node::Node,
    },
};

/// `text` counts where `delta` holds none; some servers send the same in both (C19).
pub(crate) fn text<'a>(text: &Node<'a>, has_delta: bool, element: &mut Element<'a>) {
    if !has_delta {
        element.update.kind = CompletionKind::Text;
    }
    if element.update.content.is_none() {
        element.update.content = some_text(fragment(text));
    }
}
