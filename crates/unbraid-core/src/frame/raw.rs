//! Frames before they borrow from the framer.

use super::{DONE, FrameKind};

/// A frame that does not borrow from the framer yet.
pub(super) struct RawFrame<'i> {
    pub(super) kind: FrameKind,
    pub(super) event: Part<'i>,
    pub(super) data: Part<'i>,
    pub(super) offset: u64,
    pub(super) is_later_part: bool,
}

impl<'i> RawFrame<'i> {
    pub(super) fn without_name(kind: FrameKind, data: Part<'i>, offset: u64) -> Self {
        let event = Part::Read(b"");
        Self {
            kind,
            event,
            data,
            offset,
            is_later_part: false,
        }
    }

    pub(super) fn bare_done(offset: u64) -> Self {
        Self::without_name(FrameKind::BareDone, Part::Read(DONE), offset)
    }
}

/// Where the bytes of a frame are.
#[derive(Clone, Copy)]
pub(super) enum Part<'i> {
    /// In the read.
    Read(&'i [u8]),
    /// In the buffer for lines that span several reads.
    Kept,
    /// In the buffer of the event's name.
    Name,
    /// In the buffer of the event's joined data.
    Data,
    /// In the buffer of lines without a field name.
    Bare,
    /// In the buffer of a binary message.
    Message { start: usize, end: usize },
}
