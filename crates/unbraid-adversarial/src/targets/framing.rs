//! Framing: the same bytes give the same frames, and the same error, at every cut.

use unbraid_core::internal::{FrameError, FrameKind, FrameLimits, Framer, Mode};
use unbraid_testkit::cut::{bytewise, every_cut_in_two, random_cuts};

/// Frames a body whole and in pieces. The first byte chooses the limits, the second the cuts; the rest is the body.
///
/// # Panics
///
/// Panics where a cut can be seen in the frames.
pub fn framing(input: &[u8]) {
    let [flags, seed, body @ ..] = input else {
        return;
    };
    let whole = read([body], *flags);
    assert_eq!(whole.bytes, body.len() as u64, "bytes were lost count of");
    whole.check();
    assert_eq!(read(bytewise(body), *flags), whole, "byte by byte");
    for max in [3, 40] {
        let pieces = random_cuts(body, u64::from(*seed), max);
        assert_eq!(read(pieces, *flags), whole, "reads of up to {max} bytes");
    }
    if body.len() <= SHORT {
        for (head, tail) in every_cut_in_two(body) {
            assert_eq!(read([head, tail], *flags), whole, "cut at {}", head.len());
        }
    }
}

/// Bodies that are cut everywhere.
const SHORT: usize = 64;

/// The length of `[DONE]`.
const DONE: usize = 6;

/// What a framer made of a body.
#[derive(Debug, PartialEq)]
struct Body {
    frames: Vec<Told>,
    error: Option<FrameError>,
    bytes: u64,
    seen_field: bool,
    mode: Mode,
}

/// One frame: kind, name, data and offset.
type Told = (FrameKind, Option<Vec<u8>>, Vec<u8>, u64);

impl Body {
    /// What holds for every body.
    fn check(&self) {
        // A bare end mark may stand inside of an event that has begun, but has no data.
        let events = self.frames.iter().filter(|f| f.0 != FrameKind::BareDone);
        let places: Vec<u64> = events.map(|frame| frame.3).collect();
        assert!(places.is_sorted(), "frames out of order: {places:?}");
        assert!(places.iter().all(|at| *at <= self.bytes), "{places:?}");
    }
}

fn read<'p>(pieces: impl IntoIterator<Item = &'p [u8]>, flags: u8) -> Body {
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
        let most = match frame.kind {
            FrameKind::Garbage => limits.line.max(limits.event), // it is a line, not a value
            _ => limits.event.max(DONE),
        };
        assert!(frame.data.len() <= most, "an event over its limit");
        frames.push((frame.kind, name, frame.data.to_vec(), frame.offset));
    };
    for mut piece in pieces {
        while let Some(frame) = framer.next(&mut piece) {
            assert_eq!(error, None, "a frame behind an error");
            frame.map_or_else(|e| error = Some(e), &mut keep);
        }
        assert!(piece.is_empty(), "a read was not used up");
    }
    while let Some(frame) = framer.finish() {
        assert_eq!(error, None, "a frame behind an error");
        frame.map_or_else(|e| error = Some(e), &mut keep);
    }
    assert!(framer.finish().is_none(), "a frame behind the end");
    Body {
        frames,
        error,
        bytes: framer.bytes(),
        seen_field: framer.seen_field(),
        mode: framer.mode(),
    }
}
