//! Maps the choice indices of a source to indices within the completion.

use std::{collections::HashSet, ops::Range};

use unbraid_core::ChoiceIndex;

/// Assigns the indices of a source's choices within the completion.
#[derive(Debug, Default)]
pub(crate) struct Numbering {
    /// The indices that the source may use; `None` if it is the only source, which keeps its own.
    indices: Option<Range<u32>>,
    taken: HashSet<u32>,
    /// No index of the range below this one is free.
    lowest: u32,
}

impl Numbering {
    pub(crate) fn within(indices: Range<u32>) -> Self {
        Self {
            lowest: indices.start,
            indices: Some(indices),
            taken: HashSet::new(),
        }
    }

    /// Assigns the index at the same offset in the range or, if that is taken or outside, the lowest that is free.
    pub(crate) fn assign(&mut self, source_index: ChoiceIndex) -> ChoiceIndex {
        let Some(indices) = self.indices.clone() else {
            return source_index;
        };
        let same_offset = indices
            .start
            .checked_add(source_index.0)
            .filter(|index| indices.contains(index) && !self.taken.contains(index));
        // The offset is kept where possible, so that the second choice of a server is the second one here, whichever comes
        // first.
        let index = same_offset.unwrap_or_else(|| self.lowest_free());
        self.taken.insert(index);
        ChoiceIndex(index)
    }

    /// The lowest free index. No index is ever given back, so the search continues where the last one ended. It needs no
    /// end: the router admits no more choices than the range has indices.
    fn lowest_free(&mut self) -> u32 {
        while self.taken.contains(&self.lowest) {
            self.lowest += 1;
        }
        self.lowest
    }

    /// The offset of an index in the range.
    pub(crate) fn offset(&self, index: ChoiceIndex) -> usize {
        let start = self.indices.as_ref().map_or(0, |indices| indices.start);
        index.0.saturating_sub(start) as usize
    }

    /// The only index of a source that may have one choice.
    pub(crate) fn only_index(&self) -> Option<ChoiceIndex> {
        let indices = self.indices.as_ref().filter(|indices| indices.len() == 1)?;
        Some(ChoiceIndex(indices.start))
    }

    /// How many choices the source may have; `None` if it is the only source.
    pub(crate) fn capacity(&self) -> Option<u32> {
        self.indices
            .as_ref()
            .map(|indices| indices.len().try_into().unwrap_or(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(mut numbering: Numbering, source_indices: &[u32], expected: &[u32]) {
        let assigned: Vec<u32> = source_indices
            .iter()
            .map(|index| numbering.assign(ChoiceIndex(*index)).0)
            .collect();
        assert_eq!(assigned, expected);
    }

    #[test]
    fn an_index_keeps_its_offset_or_takes_a_free_one() {
        check(Numbering::default(), &[7, 0, 3], &[7, 0, 3]);
        check(Numbering::within(4..6), &[1, 0], &[5, 4]);
        check(Numbering::within(4..6), &[1, 2], &[5, 4]); // this server counts from 1
        check(Numbering::within(0..1), &[9], &[0]);
        let end = u32::MAX - 1..u32::MAX;
        check(Numbering::within(end), &[u32::MAX], &[u32::MAX - 1]);
    }

    /// A quadratic search takes minutes for this many choices.
    #[test]
    fn many_choices_are_numbered_in_linear_time() {
        const CHOICES: u32 = 300_000;
        for source_index in [|nth| nth, |_| 0, |nth| CHOICES - nth] {
            let mut numbering = Numbering::within(7..7 + CHOICES);
            let assigned =
                (0..CHOICES).map(|nth| numbering.assign(ChoiceIndex(source_index(nth))).0);
            assert_eq!(assigned.collect::<HashSet<_>>().len(), CHOICES as usize);
        }
    }
}
