//! Streams whose logs lack the ends of choices: another gateway has sealed them, or their own could not write more than the seal.

use std::{collections::BTreeMap, sync::Arc};

use tokio_util::task::AbortOnDropHandle;

use super::StreamView;
use crate::view::assemble;

impl StreamView {
    /// Finds out how the choices of a stream have ended that another gateway has sealed. If the log has their ends, or the
    /// stream runs, it does nothing.
    ///
    /// A gateway that dies may leave a thousand such streams at once, so they are decoded as whole messages are: beside the
    /// threads that pass on deltas, and outside of the lock.
    pub(crate) async fn find_ends(self: &Arc<Self>) {
        if !self.lacks_reasons() {
            return;
        }
        let view = Arc::clone(self);
        // In a task of its own: a reader is not polled while its client accepts nothing, and would keep the others waiting for what
        // it has begun, and for its turn to decode.
        let find = tokio::spawn(async move { view.find_ends_once().await });
        // A task that was aborted, or has panicked, has found nothing, and its readers get the end of the stream.
        let _found = AbortOnDropHandle::new(find).await;
    }

    async fn find_ends_once(self: &Arc<Self>) {
        let find = || async {
            let view = Arc::clone(self);
            let found = self.decoding.run(move || view.decode_ends()).await;
            if found.is_err() {
                // After a panic, or while the process exits, the readers get the end of the stream.
                self.track().set_reasons(BTreeMap::new());
            }
        };
        self.ends.get_or_init(find).await;
    }

    /// Whether the ends of choices still have to be found.
    pub(crate) fn lacks_reasons(&self) -> bool {
        self.track().lacks_reasons
    }

    /// Decodes the events to find the finish reasons of choices whose end is not in the log, on the thread of its caller. Who
    /// waited for [`find_ends`](Self::find_ends) before, and then for a turn to decode, calls it again: the stream may have been
    /// sealed meanwhile.
    pub(crate) fn decode_ends(&self) {
        let track = self.track();
        let (tail, lacks_reasons) = (track.tail, track.lacks_reasons);
        drop(track);
        if !lacks_reasons {
            return;
        }
        let demux = assemble::combined(self, tail);
        let reasons = demux.choices().filter_map(|transcript| {
            let reason = transcript.finish_reason()?.as_str().to_owned();
            Some((transcript.index(), reason))
        });
        self.track().set_reasons(reasons.collect());
    }
}
