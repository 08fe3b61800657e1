//! The choice actor: owns the log of one choice, from the batches that nobody read to its end.
//!
//! It works from its start to its end, and receives no message. Its work arrives through the log.

use ractor::{ActorCell, ActorProcessingErr, ActorRef, ActorRuntime};
use tokio::task::JoinHandle;

use super::start_now;
use crate::state::log_owner::LogOwner;

/// The owner is a field and not the actor's `State`, because the state of a killed actor is mailed to its supervisor. That is
/// inside its own long `post_start`, so the log would stay unsealed. The actor is dropped with its task.
#[derive(Debug)]
pub(super) struct ChoiceActor(LogOwner);

impl ChoiceActor {
    /// Starts the actor that owns a log from now on. `None`, and the log is sealed, if it does not start.
    pub(super) fn start(owner: LogOwner, supervisor: &ActorCell) -> Option<JoinHandle<()>> {
        let supervisor = supervisor.clone();
        let started = start_now(ActorRuntime::spawn_linked(
            None,
            Self(owner),
            (),
            supervisor,
        ));
        started.map(|(_, handle)| handle)
    }
}

#[ractor::actor(message = (), state = (), arguments = ())]
impl ChoiceActor {
    async fn pre_start(&self, _: ActorRef<()>, (): ()) -> Result<(), ActorProcessingErr> {
        Ok(())
    }

    async fn post_start(&self, me: ActorRef<()>, (): &mut ()) -> Result<(), ActorProcessingErr> {
        // Nothing of the work is done in messages: a mailbox is unbounded, and each message would be an allocation and a
        // wake-up.
        self.0.drive().await;
        stop_self(&me);
        Ok(())
    }
}

/// Stops an actor from the last line of its work.
#[expect(
    clippy::disallowed_methods,
    reason = "nobody sends it messages, so none can be dropped"
)]
pub(super) fn stop_self(me: &ActorRef<()>) {
    me.stop(None);
}
