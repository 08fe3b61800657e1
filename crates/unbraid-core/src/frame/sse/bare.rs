//! Lines of an event stream without a field name, which the standard ignores. Some servers report an error like that (G16).

use crate::frame::{FrameKind, Part, RawFrame};

/// Collects the lines from the first one that begins like JSON.
#[derive(Default)]
pub(super) struct BareLines {
    text: Vec<u8>,
    /// The offset of the first line.
    start: u64,
    /// Whether nothing more is collected: there was too much, or it was taken.
    is_closed: bool,
}

/// An error has a few hundred bytes.
const MAX_BYTES: usize = 64 * 1024;

impl BareLines {
    pub(super) fn push(&mut self, line: &[u8], offset: u64) {
        let text = line.trim_ascii();
        let begins = text.starts_with(b"{") || text.starts_with(b"[{") || text == b"[";
        if self.is_closed || (self.text.is_empty() && !begins) {
            return;
        }
        if self.text.len() + line.len() >= MAX_BYTES {
            *self = Self {
                is_closed: true,
                ..Self::default()
            };
            return;
        }
        if self.text.is_empty() {
            self.start = offset;
        }
        self.text.extend_from_slice(line);
        self.text.push(b'\n');
    }

    /// The lines as a frame, once.
    pub(super) fn take(&mut self) -> Option<RawFrame<'static>> {
        let is_taken = std::mem::replace(&mut self.is_closed, true);
        let has_lines = !is_taken && !self.text.is_empty();
        has_lines.then(|| RawFrame::without_name(FrameKind::BareJson, Part::Bare, self.start))
    }

    pub(super) fn text(&self) -> &[u8] {
        &self.text
    }
}
