//! The templates of one stream, and when they hold.

use super::{
    chunk::Chunk,
    inside::unescape,
    template::{Found, Template},
};
use crate::{
    ChoiceIndex, Update,
    text_delta::{DeltaKind, TextDelta, UpdateSink},
};

/// Shapes that a stream's chunks take: text, reasoning and the arguments of a few calls come in turn.
const KEPT: usize = 6;

/// A stream's templates. All of them stand for the same envelope.
#[derive(Debug, Default)]
pub(super) struct Templates {
    kept: Vec<Template>,
    /// What all of them begin with.
    common: usize,
    /// Which of them fitted last.
    latest: usize,
    /// Whether the last event fitted, so that its envelope is known to whoever was told.
    told: bool,
    room: Room,
    /// Templates that were made since one last fitted: some streams are never alike.
    unfit: u32,
    fitted: u64,
}

/// Which text of which choice a chunk continues.
pub(super) struct Fit {
    pub(super) choice: u32,
    pub(super) lane: DeltaKind,
}

impl Templates {
    /// What a chunk says that stands at the start of the bytes, if it is like an earlier one.
    #[inline(always)]
    pub(super) fn find<'t>(&self, data: &'t [u8]) -> Option<Found<'t>> {
        let latest = self.kept.get(self.latest)?;
        if !latest.begins(data, self.common) {
            return None;
        }
        let found = latest.find(data, self.common, self.latest);
        found.or_else(|| self.find_other(data))
    }

    #[inline(never)]
    fn find_other<'t>(&self, data: &'t [u8]) -> Option<Found<'t>> {
        let mut others = (0..).zip(&self.kept).filter(|(at, _)| *at != self.latest);
        others.find_map(|(at, template)| template.find(data, self.common, at))
    }

    /// Tells what was found, if the caller agrees: as a piece where that is welcome and says it all.
    #[inline]
    pub(super) fn tell<T: UpdateSink + ?Sized>(
        &mut self,
        found: &Found<'_>,
        event: u64,
        sink: &mut T,
        agrees: impl Fn(Fit) -> bool,
    ) -> bool {
        let at = found.template;
        let Some(template) = self.kept.get(at) else {
            return false;
        };
        let (choice, lane) = (found.index, template.lane());
        let Some(text) = self.room.text_of(found) else {
            return false;
        };
        if !agrees(Fit { choice, lane }) {
            return false;
        }
        self.latest = at;
        self.unfit = 0;
        self.fitted += 1;
        let choice = ChoiceIndex(choice);
        let known = std::mem::replace(&mut self.told, true);
        let piece = template.piece(choice, text);
        match piece.filter(|_| known && sink.takes_pieces()) {
            Some(piece) => sink.piece(&TextDelta {
                event_index: event.into(),
                ..piece
            }),
            None => sink.update(&Update {
                event_index: event.into(),
                ..template.update(choice, text)
            }),
        }
        true
    }

    /// An event has come that no template read.
    pub(super) fn interrupt(&mut self) {
        self.told = false;
    }

    /// Makes a template of a chunk, but rarely where none ever fits.
    pub(super) fn learn(&mut self, text: &str, chunk: &Chunk<'_>) -> Option<Template> {
        /// What stands around its text is kept several times over.
        const LARGE: usize = 64 * 1024;
        if text.len() > LARGE {
            return None;
        }
        const TRIES: u32 = 8;
        const REST: u32 = 64;
        if self.unfit >= TRIES && !self.unfit.is_multiple_of(REST) {
            self.unfit = self.unfit.wrapping_add(1);
            return None;
        }
        let template = Template::new(text, chunk)?;
        self.unfit = self.unfit.wrapping_add(1);
        Some(template)
    }

    /// Keeps a template, and forgets those of another envelope.
    pub(super) fn keep(&mut self, template: Option<Template>) {
        let Some(template) = template else { return };
        self.kept
            .retain(|known| known.shares_envelope(&template) && *known != template);
        if self.kept.len() >= KEPT {
            self.kept.remove(0);
        }
        self.latest = self.kept.len();
        self.kept.push(template);
        self.common = self.shared_head();
    }

    fn shared_head(&self) -> usize {
        let mut heads = self.kept.iter().map(Template::head);
        let first = heads.next().unwrap_or_default();
        let alike = |head: &[u8]| first.iter().zip(head).take_while(|(a, b)| a == b).count();
        heads.map(alike).min().unwrap_or(first.len())
    }

    /// The fields of the envelope are others than before.
    pub(super) fn forget(&mut self) {
        self.kept.clear();
    }

    /// How many events fitted.
    pub(super) fn fitted(&self) -> u64 {
        self.fitted
    }
}

/// Where a text is put that cannot be lent out of the read.
#[derive(Debug, Default)]
struct Room {
    unescaped: String,
    short: Short,
}

/// Sixteen bytes that the standard library checks to be ASCII in one step, since they are aligned. Most pieces of text
/// are shorter, and would be checked byte by byte, for a number of steps that no processor foresees.
#[derive(Debug, Default)]
#[repr(align(16))]
struct Short([u8; 16]);

impl Room {
    /// The text in a hole; `None` where a closer look is needed.
    #[inline]
    fn text_of<'t>(&'t mut self, found: &Found<'t>) -> Option<&'t str> {
        if found.escaped {
            return unescape(std::str::from_utf8(found.text).ok()?, &mut self.unescaped);
        }
        match found.block {
            Some(block) if self.short.is_ascii(block, found.text.len()) => {
                std::str::from_utf8(&self.short.0)
                    .ok()?
                    .get(..found.text.len())
            }
            _ => std::str::from_utf8(found.text).ok(),
        }
    }
}

impl Short {
    /// Takes the first bytes of a block; whether they are all ASCII.
    #[inline]
    fn is_ascii(&mut self, block: &[u8; 16], length: usize) -> bool {
        const HIGH: u128 = u128::from_ne_bytes([0x80; 16]);
        let behind = u128::MAX.checked_shl(8 * length as u32).unwrap_or(0);
        let text = u128::from_le_bytes(*block) & !behind;
        self.0 = text.to_le_bytes();
        text & HIGH == 0
    }
}
