//! The choice actor: owns one choice's machine and writes its log.
//!
//! Its mailbox takes one message, to start; its work comes through the inbox.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use ractor::{ActorProcessingErr, ActorRef};

use crate::{
    inbox::{Batch, Inbox},
    log::Writer,
};

#[derive(Debug)]
pub(crate) struct ChoiceActor;

/// What an actor works with. It is moved out of the actor's `State` into the handler's frame: a killed actor's state is
/// mailed to its supervisor, which sits in its own long handler and would keep the log unsealed.
#[derive(Debug)]
pub(crate) struct Work {
    mail: Mail,
    writer: Writer,
}

/// The receiving end of an inbox; dropped, it refuses what still comes.
#[derive(Debug)]
struct Mail(Arc<Inbox>);

impl Drop for Mail {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

/// What a choice starts with: its first batch is applied before anyone can see the choice (R44).
#[derive(Debug)]
pub(crate) struct Start {
    work: Work,
    first: Batch,
}

impl Start {
    pub(crate) fn new(inbox: Arc<Inbox>, writer: Writer, first: Batch) -> Self {
        Self {
            work: Work {
                mail: Mail(inbox),
                writer,
            },
            first,
        }
    }
}

impl Work {
    /// False if the machine panicked: the choice is lost, its siblings are not.
    fn apply(&mut self, batch: &mut Batch) -> bool {
        let applied = catch_unwind(AssertUnwindSafe(|| self.writer.apply(batch)));
        if applied.is_err() {
            tracing::error!("a choice was lost: its machine panicked");
        }
        applied.is_ok()
    }

    async fn run(mut self) {
        let mut batch = Batch::default();
        while self.mail.0.take(&mut batch).await {
            if !self.apply(&mut batch) {
                return;
            }
            // A reader that is always ahead must not keep this task from yielding.
            tokio::task::consume_budget().await;
        }
    }
}

#[ractor::actor(message = (), state = Option<Work>, arguments = Start)]
impl ChoiceActor {
    async fn pre_start(
        &self,
        me: ActorRef<()>,
        start: Start,
    ) -> Result<Option<Work>, ActorProcessingErr> {
        let Start {
            mut work,
            mut first,
        } = start;
        let applied = work.apply(&mut first);
        me.cast(())?;
        Ok(applied.then_some(work))
    }

    async fn handle(
        &self,
        me: ActorRef<()>,
        _: (),
        work: &mut Option<Work>,
    ) -> Result<(), ActorProcessingErr> {
        if let Some(work) = work.take() {
            work.run().await;
        }
        leave(&me);
        Ok(())
    }
}

/// Ends an actor from the last line of its handler.
#[expect(
    clippy::disallowed_methods,
    reason = "the only message has been handled, so none can be dropped"
)]
pub(crate) fn leave(me: &ActorRef<()>) {
    me.stop(None);
}
