//! The choice actor: owns the log of one choice, from its first batch to its end.
//!
//! Its mailbox takes one message, which starts it. Its work arrives through the log.

use ractor::{ActorProcessingErr, ActorRef};

use crate::state::log_owner::LogOwner;

#[derive(Debug)]
pub(super) struct ChoiceActor;

/// The owner is moved out of the actor's `State` into the handler's frame. The state of a killed actor is mailed to its
/// supervisor, which is inside its own long handler, so the log would stay unsealed.
#[ractor::actor(message = (), state = Option<LogOwner>, arguments = LogOwner)]
impl ChoiceActor {
    async fn pre_start(
        &self,
        me: ActorRef<()>,
        owner: LogOwner,
    ) -> Result<Option<LogOwner>, ActorProcessingErr> {
        owner.apply(); // the first batch is applied before anyone can see the choice (R44)
        me.cast(())?;
        Ok(Some(owner))
    }

    async fn handle(
        &self,
        me: ActorRef<()>,
        _: (),
        owner: &mut Option<LogOwner>,
    ) -> Result<(), ActorProcessingErr> {
        if let Some(owner) = owner.take() {
            // Nothing of the work is done in messages: a mailbox is unbounded, and each message would be an allocation and a
            // wake-up.
            owner.drive().await;
        }
        stop_self(&me);
        Ok(())
    }
}

/// Stops an actor from the last line of its handler.
#[expect(
    clippy::disallowed_methods,
    reason = "the only message has been handled, so none can be dropped"
)]
pub(super) fn stop_self(me: &ActorRef<()>) {
    me.stop(None);
}
