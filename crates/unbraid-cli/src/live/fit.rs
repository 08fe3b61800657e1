//! Fits titles into the width that there is: the least important part goes first, and an end is never cut off.

use ratatui::{
    style::Style,
    text::{Line, Span},
};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// A part of a title.
#[derive(Debug, Clone)]
pub(super) struct Part {
    pub(super) text: String,
    pub(super) style: Style,
    /// Parts with a higher number are dropped first. Those with 0 are only shortened.
    pub(super) priority: u8,
}

impl Part {
    pub(super) fn new(text: impl Into<String>, style: Style, priority: u8) -> Self {
        Self {
            text: text.into(),
            style,
            priority,
        }
    }
}

/// Joins as many parts as fit, with a gap between them.
pub(super) fn fit(mut parts: Vec<Part>, gap: &'static str, width: usize) -> Line<'static> {
    let total = |parts: &[Part]| {
        let text: usize = parts.iter().map(|part| part.text.width()).sum();
        text + gap.width() * parts.len().saturating_sub(1)
    };
    while total(&parts) > width {
        let last = parts.iter().map(|part| part.priority).max();
        let Some(last) = last.filter(|&priority| priority > 0) else {
            break;
        };
        parts.retain(|part| part.priority < last);
    }
    let excess = total(&parts).saturating_sub(width);
    if let Some(longest) = parts.iter_mut().max_by_key(|part| part.text.width()) {
        let width = longest.text.width().saturating_sub(excess);
        longest.text = shorten(&longest.text, width);
    }
    let mut spans = Vec::new();
    for part in parts {
        if !spans.is_empty() {
            spans.push(Span::raw(gap));
        }
        spans.push(Span::styled(part.text, part.style));
    }
    Line::from(spans)
}

/// Shortens a text in its middle, so that both its start and its end stay.
pub(super) fn shorten(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let Some(rest) = width.checked_sub(1) else {
        return String::new();
    };
    let start = take(text.graphemes(true), rest.div_ceil(2));
    let end = take(text.graphemes(true).rev(), rest / 2);
    format!(
        "{}\u{2026}{}",
        start.concat(),
        end.into_iter().rev().collect::<String>()
    )
}

/// As many graphemes as fit into this width.
fn take<'t>(graphemes: impl Iterator<Item = &'t str>, width: usize) -> Vec<&'t str> {
    let mut used = 0;
    graphemes
        .take_while(|grapheme| {
            used += grapheme.width();
            used <= width
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fitted(width: usize) -> String {
        let part = |text, priority| Part::new(text, Style::new(), priority);
        let parts = vec![
            part("[2]", 0),
            part("\u{2713} length", 0),
            part("23 tokens/s", 1),
            part("9 deltas", 2),
        ];
        let line = fit(parts, "  ", width);
        line.spans
            .iter()
            .map(|span| span.content.as_ref())
            .collect()
    }

    #[test]
    fn the_least_important_part_goes_first_and_the_end_stays() {
        assert_eq!(fitted(99), "[2]  \u{2713} length  23 tokens/s  9 deltas");
        assert_eq!(fitted(36), "[2]  \u{2713} length  23 tokens/s  9 deltas");
        assert_eq!(fitted(35), "[2]  \u{2713} length  23 tokens/s");
        assert_eq!(fitted(26), "[2]  \u{2713} length  23 tokens/s");
        assert_eq!(fitted(25), "[2]  \u{2713} length");
        assert_eq!(fitted(10), "[2]  \u{2713} \u{2026}th");
        for width in 0..6 {
            fitted(width);
        }
    }

    #[test]
    fn texts_are_shortened_in_the_middle() {
        assert_eq!(
            shorten("recordings/answer.sse", 21),
            "recordings/answer.sse"
        );
        assert_eq!(shorten("recordings/answer.sse", 11), "recor\u{2026}r.sse");
        assert_eq!(
            shorten("\u{96e8}\u{96e8}\u{96e8}\u{96e8}", 6),
            "\u{96e8}\u{2026}\u{96e8}"
        );
        assert_eq!(shorten("abc", 1), "\u{2026}");
        assert_eq!(shorten("abc", 0), "");
    }
}
