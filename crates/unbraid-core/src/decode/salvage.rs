//! What servers and proxies do to an event as a whole: fused frames, missing blank lines, cut ends.

use super::{Decoder, Out, node};

impl Decoder {
    /// An event that is not one JSON value: its lines (S10), its values (S28), what follows the damage (S27), or lost (X13).
    pub(super) fn salvage<'a>(&mut self, text: &'a str, out: &mut Out<'a, '_>) {
        if text.contains('\n') && text.lines().all(|line| self.is_good(line)) {
            out.warn("S10", "several frames without a blank line between them");
            for line in text.lines() {
                self.payload(line, out);
                if out.done {
                    break; // S26
                }
            }
            return;
        }
        if self.values(text, out) {
            return;
        }
        if let Some((lost, rest)) = split_at_fused(text)
            && self.is_good(rest)
        {
            out.warn(
                "S27",
                format!("two frames in one: the first {lost} bytes were lost"),
            );
            self.payload(rest, out);
            return;
        }
        out.warn(
            "X13",
            format!(
                "a chunk of {} bytes that is no JSON was skipped",
                text.len()
            ),
        );
    }

    /// Whether the unterminated last event is complete after all: as a whole, or each of its lines (S21); else it was
    /// cut (S22).
    pub(super) fn is_whole(&self, text: &str) -> bool {
        self.is_good(text) || (!self.strict && text.lines().all(|line| self.is_good(line)))
    }

    /// Whether a text stands for itself: JSON, an end mark, or a keep-alive.
    fn is_good(&self, line: &str) -> bool {
        let line = line.trim();
        line.is_empty()
            || line.starts_with(':')
            || line.trim_matches('"') == "[DONE]"
            || line == "ping"
            || node::read(line, self.depth).is_ok()
    }

    /// Consecutive values in one frame (S28). What follows them and is no value is lost.
    fn values<'a>(&mut self, text: &'a str, out: &mut Out<'a, '_>) -> bool {
        let mut rest = text.trim();
        let mut values = 0_usize;
        while let Ok((node, used)) = node::read_prefix(rest, self.depth) {
            // Only objects: "12abc" begins with a number and is no frame.
            if node.as_object().is_none() {
                break;
            }
            self.value(&node, out);
            values += 1;
            rest = rest.get(used..).unwrap_or("").trim_start();
            if rest.is_empty() {
                break;
            }
        }
        if values == 0 {
            return false;
        }
        if rest.trim_matches('"') == "[DONE]" {
            out.done = true;
            out.recognised = true;
        } else if !rest.is_empty() {
            out.warn(
                "X13",
                format!("{} bytes after a chunk are no JSON", rest.len()),
            );
        }
        out.warn("S28", "several values in one frame");
        true
    }
}

/// Where a frame begins inside of another, and how much stands before it.
fn split_at_fused(text: &str) -> Option<(usize, &str)> {
    let at = text.rfind("data: {").or_else(|| text.rfind("data:{"))?;
    let rest = text.get(at..)?;
    Some((at, rest.strip_prefix("data:")?))
}
