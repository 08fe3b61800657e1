//! Which index a source's choice has within the completion.

use std::{collections::HashSet, ops::Range};

use unbraid_core::ChoiceIndex;

/// The indices of a source's choices within the completion.
#[derive(Debug, Default)]
pub(crate) struct Numbering {
    /// Those that it may use; all are its own if it is the only source.
    indices: Option<Range<u32>>,
    taken: HashSet<u32>,
    /// No number of the range before this one is free.
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

    /// The place of the index in the range, or else the lowest that is free.
    pub(crate) fn number(&mut self, index: ChoiceIndex) -> ChoiceIndex {
        let Some(indices) = self.indices.clone() else {
            return index;
        };
        let own = indices
            .start
            .checked_add(index.0)
            .filter(|own| indices.contains(own));
        let own = own.filter(|number| !self.taken.contains(number));
        // The router lets no more in than there are numbers.
        let number = own.unwrap_or_else(|| self.lowest_free(indices.end));
        self.taken.insert(number);
        ChoiceIndex(number)
    }

    /// The lowest number that is free. None is ever given back, so that the search goes on where the last one ended.
    fn lowest_free(&mut self, end: u32) -> u32 {
        while self.lowest < end && self.taken.contains(&self.lowest) {
            self.lowest += 1;
        }
        self.lowest
    }

    /// The position of an index in the range.
    pub(crate) fn offset(&self, index: ChoiceIndex) -> usize {
        let start = self.indices.as_ref().map_or(0, |indices| indices.start);
        index.0.saturating_sub(start) as usize
    }

    /// How many choices a source may have that is one of several.
    pub(crate) fn room(&self) -> Option<u32> {
        self.indices
            .as_ref()
            .map(|indices| indices.len().try_into().unwrap_or(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(mut numbering: Numbering, own: &[u32], expected: &[u32]) {
        let numbers: Vec<u32> = own
            .iter()
            .map(|own| numbering.number(ChoiceIndex(*own)).0)
            .collect();
        assert_eq!(numbers, expected);
    }

    #[test]
    fn an_index_keeps_its_place_or_takes_a_free_one() {
        check(Numbering::default(), &[7, 0, 3], &[7, 0, 3]);
        check(Numbering::within(4..6), &[1, 0], &[5, 4]);
        check(Numbering::within(4..6), &[1, 2], &[5, 4]); // this server counts from 1
        check(Numbering::within(0..1), &[9], &[0]);
        let end = u32::MAX - 1..u32::MAX;
        check(Numbering::within(end), &[u32::MAX], &[u32::MAX - 1]);
    }

    /// The quadratic way takes minutes for so many.
    #[test]
    fn many_choices_are_numbered_in_linear_time() {
        const CHOICES: u32 = 300_000;
        for own in [|nth| nth, |_| 0, |nth| CHOICES - nth] {
            let mut numbering = Numbering::within(7..7 + CHOICES);
            let numbers = (0..CHOICES).map(|nth| numbering.number(ChoiceIndex(own(nth))).0);
            assert_eq!(numbers.collect::<HashSet<_>>().len(), CHOICES as usize);
        }
    }
}
