//! Framing: the same bytes give the same frames and the same error for every split into reads.

use unbraid_core::internal::{FrameError, FrameKind, FrameLimits, Framer, Mode};
use unbraid_testkit::cut::{bytewise, every_cut_in_two, random_cuts};

/// Frames a body in one read and in several. The first byte selects the limits, the second seeds the reads, the rest is
/// the body.
///
/// # Panics
///
/// Panics if the frames depend on the reads.
pub fn framing(input: &[u8]) {
    let [flags, seed, body @ ..] = input else {
        return;
    };
    let unsplit = read([body], *flags);
    assert_eq!(unsplit.bytes, body.len() as u64, "the byte count is wrong");
    unsplit.check();
    assert_eq!(read(bytewise(body), *flags), unsplit, "byte by byte");
    for max in [3, 40] {
        let reads = random_cuts(body, u64::from(*seed), max);
        assert_eq!(read(reads, *flags), unsplit, "reads of up to {max} bytes");
    }
    if body.len() <= SHORT {
        for (head, tail) in every_cut_in_two(body) {
            assert_eq!(read([head, tail], *flags), unsplit, "cut at {}", head.len());
        }
    }
}

/// Bodies up to this length are cut at every byte.
const SHORT: usize = 64;

/// The length of `[DONE]`.
const DONE: usize = 6;

/// The result of framing a body.
#[derive(Debug, PartialEq)]
struct Body {
    frames: Vec<OwnedFrame>,
    error: Option<FrameError>,
    bytes: u64,
    seen_field: bool,
    mode: Mode,
}

/// One frame: kind, name, data and offset.
type OwnedFrame = (FrameKind, Option<Vec<u8>>, Vec<u8>, u64);

impl Body {
    /// Checks the invariants of every body.
    fn check(&self) {
        // A bare end mark may appear inside an event that has no data yet, and bare JSON comes last.
        let is_bare = |kind| matches!(kind, FrameKind::BareDone | FrameKind::BareJson);
        let events = self.frames.iter().filter(|f| !is_bare(f.0));
        let offsets: Vec<u64> = events.map(|frame| frame.3).collect();
        assert!(offsets.is_sorted(), "frames out of order: {offsets:?}");
        assert!(
            offsets.iter().all(|offset| *offset <= self.bytes),
            "{offsets:?}"
        );
    }
}

fn read<'p>(reads: impl IntoIterator<Item = &'p [u8]>, flags: u8) -> Body {
    let limits = match flags >> 1 & 3 {
        0 | 1 => (1 << 20, 1 << 20),
        2 => (40, 60),
        _ => (200, 30),
    };
    let limits = FrameLimits::new(limits.0, limits.1);
    let mut framer = Framer::new(limits, flags & 1 == 1);
    let mut frames = Vec::new();
    let mut error = None;
    let mut keep = |frame: unbraid_core::internal::Frame<'_>| {
        let name = frame.event.map(<[u8]>::to_vec);
        let max_length = match frame.kind {
            // These have limits of their own: a length with the headers, and that of an error.
            FrameKind::TruncatedMessage | FrameKind::BareJson => 1 << 16,
            FrameKind::Garbage => limits.line.max(limits.event), // a line, not a value
            _ => limits.event.max(DONE),
        };
        assert!(frame.data.len() <= max_length, "an event over its limit");
        frames.push((frame.kind, name, frame.data.to_vec(), frame.offset));
    };
    for mut read_bytes in reads {
        while let Some(frame) = framer.next(&mut read_bytes) {
            assert_eq!(error, None, "a frame after an error");
            frame.map_or_else(|e| error = Some(e), &mut keep);
        }
        assert!(read_bytes.is_empty(), "a read was not consumed");
    }
    while let Some(frame) = framer.finish() {
        assert_eq!(error, None, "a frame after an error");
        frame.map_or_else(|e| error = Some(e), &mut keep);
    }
    assert!(framer.finish().is_none(), "a frame after the end");
    Body {
        frames,
        error,
        bytes: framer.bytes(),
        seen_field: framer.seen_field(),
        mode: framer.mode(),
    }
}
