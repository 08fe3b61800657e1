//! Text completions, whose text is in `choices[].text`. Log probabilities are parallel lists; everything else is as in chats.

use crate::{
    CompletionKind,
    chunk::{Element, some_text},
    node::Node,
};

/// Reads `text`, which counts if the delta has no content. Some servers send the same text in both (C19).
pub(crate) fn text<'a>(text: &Node<'a>, has_delta: bool, element: &mut Element<'a>) {
    if !has_delta {
        element.update.kind = CompletionKind::Text;
    }
    if element.update.content.is_none() {
        element.update.content = some_text(text.fragment());
    }
}
