//! What is remembered of streams that have ended, and that the log does not say.

use std::collections::{HashMap, VecDeque};

use unbraid_log::StreamId;

/// How many streams are remembered.
const MAX_STREAMS: usize = 10_000;

/// The streams that ended last, with a value of each.
pub(super) struct EndedStreams<T> {
    values: HashMap<StreamId, T>,
    oldest_first: VecDeque<StreamId>,
}

impl<T> Default for EndedStreams<T> {
    fn default() -> Self {
        Self {
            values: HashMap::new(),
            oldest_first: VecDeque::new(),
        }
    }
}

impl<T> EndedStreams<T> {
    pub(super) fn insert(&mut self, id: &StreamId, value: T) {
        if self.values.insert(id.clone(), value).is_some() {
            return;
        }
        self.oldest_first.push_back(id.clone());
        if self.oldest_first.len() > MAX_STREAMS
            && let Some(oldest) = self.oldest_first.pop_front()
        {
            self.values.remove(&oldest);
        }
    }

    pub(super) fn get(&self, id: &StreamId) -> Option<&T> {
        self.values.get(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_oldest_stream_is_forgotten() {
        let mut streams = EndedStreams::default();
        let ids = [(); MAX_STREAMS + 1].map(|()| StreamId::random().unwrap());
        for id in &ids {
            streams.insert(id, ());
            streams.insert(id, ());
        }
        assert!(streams.get(&ids[0]).is_none());
        assert!(ids[1..].iter().all(|id| streams.get(id).is_some()));
    }
}
