//! Which streams had a request for each choice, although the log may not say so: the log's entry is written when a stream opens,
//! and a provider may turn out to refuse or ignore `n` later.

use std::collections::{HashSet, VecDeque};

use unbraid_log::StreamId;

/// How many streams are remembered. Only their status shows it.
const MAX_STREAMS: usize = 10_000;

/// The streams that ended last.
#[derive(Default)]
pub(super) struct FannedOut {
    ids: HashSet<StreamId>,
    oldest_first: VecDeque<StreamId>,
}

impl FannedOut {
    pub(super) fn insert(&mut self, id: &StreamId) {
        if !self.ids.insert(id.clone()) {
            return;
        }
        self.oldest_first.push_back(id.clone());
        if self.oldest_first.len() > MAX_STREAMS
            && let Some(oldest) = self.oldest_first.pop_front()
        {
            self.ids.remove(&oldest);
        }
    }

    pub(super) fn contains(&self, id: &StreamId) -> bool {
        self.ids.contains(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_oldest_stream_is_forgotten() {
        let mut streams = FannedOut::default();
        let ids = [(); MAX_STREAMS + 1].map(|()| StreamId::random().unwrap());
        for id in &ids {
            streams.insert(id);
            streams.insert(id);
        }
        assert!(!streams.contains(&ids[0]));
        assert!(ids[1..].iter().all(|id| streams.contains(id)));
    }
}
