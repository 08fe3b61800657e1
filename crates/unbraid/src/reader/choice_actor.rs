//! The choice actor: owns the log of one choice, from its first batch to its end.
//!
//! It works from its start to its end, and receives no message. Its work arrives through the log.

use ractor::{ActorProcessingErr, ActorRef};

use crate::state::log_owner::LogOwner;

#[derive(Debug)]
pub(super) struct ChoiceActor;

/// The owner is moved out of the actor's `State` into the frame of `post_start`. The state of a killed actor is mailed to its
/// supervisor, which is inside its own long `post_start`, so the log would stay unsealed.
#[ractor::actor(message = (), state = Option<LogOwner>, arguments = LogOwner)]
impl ChoiceActor {
    async fn pre_start(
        &self,
        _: ActorRef<()>,
        owner: LogOwner,
    ) -> Result<Option<LogOwner>, ActorProcessingErr> {
        owner.apply(); // the first batch is applied before anyone can see the choice (R44)
        Ok(Some(owner))
    }

    async fn post_start(
        &self,
        me: ActorRef<()>,
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

/// Stops an actor from the last line of its work.
#[expect(
    clippy::disallowed_methods,
    reason = "nobody sends it messages, so none can be dropped"
)]
pub(super) fn stop_self(me: &ActorRef<()>) {
    me.stop(None);
}
