//! Changes parts of a text, and copies the rest.

use std::borrow::Cow;

use super::json::Span;

/// Changes of a text, in any order. They must not overlap.
#[derive(Debug, Default)]
pub(super) struct Edits {
    edits: Vec<(Span, Cow<'static, str>)>,
}

impl Edits {
    pub(super) fn replace(&mut self, span: Span, text: impl Into<Cow<'static, str>>) {
        self.edits.push((span, text.into()));
    }

    /// Keeps some items of a list, with a comma between them, and removes the others. If all are kept, nothing changes.
    pub(super) fn keep_items(
        &mut self,
        interior: &Span,
        items: impl ExactSizeIterator<Item = (Span, bool)>,
    ) {
        let count = items.len();
        let kept: Vec<Span> = items
            .filter_map(|(span, is_kept)| is_kept.then_some(span))
            .collect();
        if kept.len() == count {
            return;
        }
        let mut end = interior.start;
        for (position, span) in kept.iter().enumerate() {
            self.replace(end..span.start, if position == 0 { "" } else { "," });
            end = span.end;
        }
        self.replace(end..interior.end, "");
    }

    pub(super) fn apply(mut self, text: &[u8]) -> Vec<u8> {
        self.edits.sort_by_key(|(span, _)| (span.start, span.end));
        let added: usize = self.edits.iter().map(|(_, new)| new.len()).sum();
        let mut result = Vec::with_capacity(text.len() + added);
        let mut copied = 0;
        for (span, new) in &self.edits {
            result.extend_from_slice(text.get(copied..span.start).unwrap_or_default());
            result.extend_from_slice(new.as_bytes());
            copied = span.end;
        }
        result.extend_from_slice(text.get(copied..).unwrap_or_default());
        result
    }
}
