//! Removes the entries of a queue that have become useless before they are due.

use std::collections::VecDeque;

/// A queue of at most this many entries is left alone.
const ALWAYS_KEPT: usize = 1024;

/// Keeps a queue at most about twice as long as its useful entries. Each removal follows as many insertions as it visits
/// entries, so that an insertion costs constant time on average.
#[derive(Default)]
pub(super) struct Pruner {
    /// How many entries were useful at the last removal.
    kept: usize,
}

impl Pruner {
    pub(super) fn prune<T>(&mut self, queue: &mut VecDeque<T>, is_useful: impl FnMut(&T) -> bool) {
        if queue.len() > 2 * self.kept + ALWAYS_KEPT {
            queue.retain(is_useful);
            self.kept = queue.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_has_few_useless_entries_and_all_useful_ones() {
        let (mut queue, mut pruner) = (VecDeque::new(), Pruner::default());
        for entry in 0..100_000 {
            pruner.prune(&mut queue, |entry| entry % 20 == 0);
            queue.push_back(entry);
        }
        assert!(queue.iter().filter(|entry| *entry % 20 == 0).count() == 5000);
        assert!(queue.len() < 2 * 5000 + ALWAYS_KEPT + 2, "{}", queue.len());
    }
}
