//! Delivers what was decoded: batches to the choices, and to the completion what concerns the stream itself.

use unbraid_core::Warning;

use super::Reader;
use crate::state::{choice_log::ChoiceLog, completion::Published};

impl Reader {
    /// Delivers the batches from within a poll; returns false if there is more to do, which needs an `await`. A shortcut:
    /// after the poll, [`deliver`](Self::deliver) would do the same, but the source would then be polled once more.
    pub(super) fn deliver_now(&mut self) -> bool {
        let only_batches = self.selection.is_none() && self.pipeline.router().closed().is_none();
        let delivered = only_batches && self.outbox_mut().deliver();
        if delivered {
            self.publish(Vec::new());
        }
        delivered
    }

    /// Delivers the batches, announces new choices, starts the actors of others, and publishes what concerns the stream itself.
    pub(super) fn deliver(&mut self) {
        let new = if self.outbox_mut().deliver() {
            Vec::new()
        } else {
            let over = self.pipeline.router().closed().is_some();
            // When the stream is over, no more updates arrive for a choice, so it needs no actor.
            let supervisor = self.actor.as_ref().filter(|_| !over);
            let (completion, owners) = (&self.completion, &mut self.owners);
            self.pipeline.sink.advance(supervisor, completion, owners)
        };
        self.publish(new);
    }

    fn publish(&mut self, choices: Vec<ChoiceLog>) {
        let router = self.pipeline.router();
        // Only the control needs this: when the last handle is dropped, the reader then drains a connection that can be
        // reused, and is not killed.
        if self.all_choices_ended != router.all_ended() {
            self.all_choices_ended = router.all_ended();
            self.control.set_all_choices_ended(self.all_choices_ended);
        }
        // Only a whole update can change the metadata or warn, and most events bring a piece of text. So the usual read
        // publishes nothing, and takes no lock to find that out.
        let updates = router.updates();
        let no_update = std::mem::replace(&mut self.published_updates, updates) == updates;
        let nothing_new = choices.is_empty() && !self.outbox().has_events();
        let router = self.pipeline.router();
        if nothing_new && (no_update || self.completion.has_published(router.metadata())) {
            return;
        }
        let events = self.outbox_mut().take_events();
        let router = self.pipeline.router();
        self.completion.publish(Published {
            choices,
            events,
            metadata: router.metadata(),
            warnings: self.warnings(),
            warnings_dropped: router.warnings_dropped(),
        });
    }

    /// The warnings of the stream itself, with each choice's index within the completion.
    fn warnings(&self) -> Vec<Warning> {
        let mut warnings = self.pipeline.router().warnings().to_vec();
        for warning in &mut warnings {
            self.outbox().assign_choice(warning);
        }
        warnings
    }
}
