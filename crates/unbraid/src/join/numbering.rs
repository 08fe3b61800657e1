//! Which index a source's choice has within the completion.

use std::ops::Range;

use unbraid_core::ChoiceIndex;

/// The indices of a source's choices within the completion.
#[derive(Debug, Default)]
pub(crate) struct Numbering {
    /// Those that it may use; all are its own if it is the only source.
    indices: Option<Range<u32>>,
    taken: Vec<ChoiceIndex>,
}

impl Numbering {
    pub(crate) fn within(indices: Range<u32>) -> Self {
        Self {
            indices: Some(indices),
            taken: Vec::new(),
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
        let free = |number: &u32| !self.taken.contains(&ChoiceIndex(*number));
        // The router lets no more in than there are numbers.
        let number = own.filter(free).or_else(|| indices.clone().find(free));
        let number = ChoiceIndex(number.unwrap_or(indices.end));
        self.taken.push(number);
        number
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
}
