//! What servers and proxies do to an event as a whole: fused frames, missing blank lines, cut ends.

use super::{Decoder, Out, node};
use crate::limits::MAX_ENTRIES;

impl Decoder {
    /// An event that is not one JSON value: its values (S28, or S10 where they stand on lines of their own), then what is
    /// left line by line, and what follows the damage within a line (S27); the rest is lost (X13).
    ///
    /// It costs no more than a few passes over the text, however many lines and values that is made of: what comes
    /// behind as many of them as an event may hold is only counted.
    pub(super) fn salvage<'a>(&mut self, text: &'a str, out: &mut Out<'a, '_>) {
        if text.contains('\n') {
            let values = self.values(text, out);
            let good = self.lines(values.unwrap_or(text), out);
            if good || values.is_some() {
                out.warn("S10", "several frames without a blank line between them");
            }
        } else {
            let _good = self.damaged(text, out);
        }
    }

    /// Each line by itself, as far as there is room; whether any of them was good.
    pub(super) fn lines<'a>(&mut self, text: &'a str, out: &mut Out<'a, '_>) -> bool {
        let (mut rest, mut good) = (text, false);
        for _ in 0..MAX_ENTRIES {
            if out.done || out.is_full() || rest.is_empty() {
                break; // S26
            }
            let (line, behind) = rest.split_once('\n').unwrap_or((rest, ""));
            rest = behind;
            if !line.trim().is_empty() {
                let is_good = self.payload(line, out);
                if is_good {
                    out.good_follows();
                }
                good |= is_good || self.damaged(line, out);
            }
        }
        if out.is_full() && !rest.is_empty() {
            out.skip();
        } else if !out.done {
            out.lose_lines(rest);
        }
        good
    }

    /// A line that is no value and no mark; whether anything of it was good.
    fn damaged<'a>(&mut self, line: &'a str, out: &mut Out<'a, '_>) -> bool {
        if let Some(rest) = self.values(line, out) {
            out.warn("S28", "several values in one frame");
            if !rest.is_empty() && out.is_full() {
                out.skip();
            } else if !rest.is_empty() && !out.done {
                out.lose(rest.len());
            }
            true
        } else if let Some((lost, rest)) = split_at_fused(line)
            && self.is_good(rest)
        {
            out.warn(
                "S27",
                format!("two frames in one: the first {lost} bytes were lost"),
            );
            self.payload(rest, out)
        } else {
            out.lose(line.len());
            false
        }
    }

    /// Whether the unterminated last event is complete after all (S21); else it was cut (S22). Of one that is named error
    /// it is the last line that counts (S32).
    pub(super) fn is_whole(&self, text: &str) -> bool {
        let last = text.trim_end().rsplit('\n').next();
        self.is_good(text) || (!self.strict && last.is_some_and(|line| self.is_good(line)))
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

    /// Reads consecutive values, and gives what follows them; `None` if there is none.
    fn values<'a>(&mut self, text: &'a str, out: &mut Out<'a, '_>) -> Option<&'a str> {
        let mut rest = text.trim();
        let mut values = 0_usize;
        while !out.is_full()
            && let Ok((node, used)) = node::read_prefix(rest, self.depth)
        {
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
            return None;
        }
        if rest.trim_matches('"') == "[DONE]" {
            out.done = true;
            out.is_chunk = true;
        }
        Some(rest)
    }
}

/// Where a frame begins inside of another, and how much stands before it.
fn split_at_fused(text: &str) -> Option<(usize, &str)> {
    let at = text.rfind("data: {").or_else(|| text.rfind("data:{"))?;
    let rest = text.get(at..)?;
    Some((at, rest.strip_prefix("data:")?))
}
