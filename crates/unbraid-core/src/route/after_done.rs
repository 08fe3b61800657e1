//! What is still read after `[DONE]` if the configuration asks for it: usage, and nothing else (U13).

use super::{ChoiceSink, Router};
use crate::{ChoiceEnd, ChoiceIndex, Update, usage::Source};

impl Router {
    /// The stream's end mark arrived: every choice ends now, and the stream closes unless usage may follow.
    pub(super) fn done(&mut self, sink: &mut impl ChoiceSink) {
        self.usage_mut().done();
        if self.config.usage_after_done {
            // The choices do not wait for the usage, which may never come.
            self.finish_all(&ChoiceEnd::DoneWithoutFinish, None, sink);
            self.after_done = true;
        } else {
            self.close(Ok(()), sink);
        }
    }

    /// Whether `[DONE]` arrived and the stream stays open for usage.
    #[must_use]
    pub fn is_after_done(&self) -> bool {
        self.after_done && self.closed.is_none()
    }

    /// Whether choices may still come: neither `[DONE]` nor the stream's end has been reached.
    #[inline]
    pub(crate) fn takes_choices(&self) -> bool {
        !self.after_done && self.closed.is_none()
    }

    /// Reads the usage of an update after `[DONE]`.
    pub(super) fn usage_after_done(&mut self, update: &Update<'_>) {
        let Some(raw) = &update.usage else {
            return;
        };
        match update.choice {
            None => {
                self.usage_mut().envelope(raw, Source::Bare, None);
            }
            Some(index) => {
                let folded = self.config.expect_choices == Some(1);
                let index = if folded { ChoiceIndex(0) } else { index };
                // No choice is opened any more, so usage of an unknown one would belong to nobody.
                if self.slot(index).is_some() {
                    self.usage_mut().choice(index, raw);
                }
            }
        }
    }
}
