//! Repairs what servers and proxies do to a whole event: fused frames, missing blank lines, cut ends.

use super::{Decoder, Emitter, event::is_done_mark};
use crate::{limits::MAX_ENTRIES, node};

impl Decoder {
    /// Decodes an event that is not one JSON value.
    ///
    /// - Consecutive values are decoded one by one (S28, or S10 if they are on lines of their own).
    /// - The rest is decoded line by line.
    /// - Within a damaged line, a frame after the damage is decoded (S27).
    /// - Everything else is lost (X13).
    ///
    /// The time is linear in the text: once as many values or lines were decoded as one event may hold, the rest is
    /// only counted. Otherwise a server could send an event of a million fragments, each of which starts a new parse.
    pub(super) fn salvage<'a>(&mut self, text: &'a str, emitter: &mut Emitter<'a, '_>) {
        if text.contains('\n') {
            // Values may span several lines, so they are tried before single lines.
            let values = self.values(text, emitter);
            let has_good_line = self.lines(values.unwrap_or(text), emitter);
            if has_good_line || values.is_some() {
                emitter.warn("S10", "several events without a blank line between them");
            }
        } else {
            // The caller warns of lost data when the event is finished.
            let _is_good = self.damaged(text, emitter);
        }
    }

    /// Decodes each line by itself within the budget; returns whether any of them was good.
    pub(super) fn lines<'a>(&mut self, text: &'a str, emitter: &mut Emitter<'a, '_>) -> bool {
        let (mut rest, mut has_good) = (text, false);
        // The bound is on lines, good or bad: each of them may be parsed twice, as a payload and as a damaged line.
        for _ in 0..MAX_ENTRIES {
            if emitter.done || emitter.is_full() || rest.is_empty() {
                break; // S26: nothing after the end mark counts
            }
            let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
            rest = after;
            if !line.trim().is_empty() {
                let is_good = self.payload(line, emitter);
                if is_good {
                    emitter.confirm_lost();
                }
                has_good |= is_good || self.damaged(line, emitter);
            }
        }
        // What exceeds the budget was not read, so it is not called damaged: one warning says that it was skipped.
        if emitter.is_full() && !rest.is_empty() {
            emitter.warn_skipped();
        } else if !emitter.done {
            emitter.count_lost_lines(rest);
        }
        has_good
    }

    /// Decodes the good parts of a line that is neither a value nor an end mark; returns whether there are any.
    fn damaged<'a>(&mut self, line: &'a str, emitter: &mut Emitter<'a, '_>) -> bool {
        let Some(rest) = self.values(line, emitter) else {
            return self.fused(line, emitter);
        };
        emitter.warn("S28", "several values in one event");
        if !rest.is_empty() && emitter.is_full() {
            emitter.warn_skipped();
        } else if !rest.is_empty() && !emitter.done {
            self.fused(rest, emitter);
        }
        true
    }

    /// Decodes the frame that begins inside another one, which was cut; returns whether there is one.
    fn fused<'a>(&mut self, line: &'a str, emitter: &mut Emitter<'a, '_>) -> bool {
        // The frame after the damage is complete only if it is good by itself. Otherwise the whole line counts as lost once.
        match split_at_fused(line).filter(|(_, rest)| self.is_good(rest)) {
            Some((lost, rest)) => {
                let message = match lost {
                    0 => "two events in one".to_owned(), // the first one was nothing but its field name
                    lost => format!("two events in one: the first {lost} bytes were lost"),
                };
                emitter.warn("S27", message);
                self.payload(rest, emitter)
            }
            None => {
                emitter.count_lost(line.len());
                false
            }
        }
    }

    /// Whether the unterminated last event is complete after all (S21). Otherwise it was cut (S22). If the event is
    /// named `error`, only its last line has to be complete (S32).
    pub(super) fn is_complete(&self, text: &str) -> bool {
        let last_line = text.trim_end().rsplit('\n').next();
        self.is_good(text) || (!self.strict && last_line.is_some_and(|line| self.is_good(line)))
    }

    /// Whether a text is complete by itself: JSON, an end mark or a keep-alive.
    fn is_good(&self, line: &str) -> bool {
        let line = line.trim();
        line.is_empty()
            || line.starts_with(':')
            || is_done_mark(line)
            || line == "ping"
            || node::read(line, self.max_depth).is_ok()
    }

    /// Decodes consecutive values and returns the text after them; `None` if there is none.
    fn values<'a>(&mut self, text: &'a str, emitter: &mut Emitter<'a, '_>) -> Option<&'a str> {
        let mut rest = text.trim();
        let mut count = 0_usize;
        // Each value is parsed once, from where the last one ended, so a million values on one line take linear time.
        while !emitter.is_full()
            && let Ok((node, used)) = node::read_prefix(rest, self.max_depth)
        {
            // Only objects are frames: `12abc` begins with a number, but is damage.
            if node.as_object().is_none() {
                break;
            }
            self.value(&node, emitter);
            count += 1;
            rest = rest.get(used..).unwrap_or("").trim_start();
            if rest.is_empty() {
                break;
            }
            // S27: the next frame follows without a line end.
            if let Some(frame) = rest.strip_prefix("data:").map(str::trim_start)
                && frame.starts_with('{')
            {
                rest = frame;
            }
        }
        // Without a value nothing was emitted, and the caller may try something else with the whole text.
        if count == 0 {
            return None;
        }
        if is_done_mark(rest) {
            emitter.done = true;
            emitter.is_chunk = true;
        }
        Some(rest)
    }
}

/// Finds a frame that begins inside another one. Returns the length of the text before it, and the frame's data.
fn split_at_fused(text: &str) -> Option<(usize, &str)> {
    // From the back: the frames before the last one were cut by the next.
    let offset = text.rfind("data: {").or_else(|| text.rfind("data:{"))?;
    let rest = text.get(offset..)?;
    Some((offset, rest.strip_prefix("data:")?))
}
