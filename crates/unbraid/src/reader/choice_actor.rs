//! The choice actor: owns one choice's log, from its first batch to its end.
//!
//! Its mailbox takes one message, to start; its work comes through the log.

use ractor::{ActorProcessingErr, ActorRef};

use crate::state::choice_log::Owner;

#[derive(Debug)]
pub(crate) struct ChoiceActor;

/// The log is moved out of the actor's `State` into the handler's frame: a killed actor's state is mailed to its supervisor,
/// which sits in its own long handler and would keep the log unsealed.
#[ractor::actor(message = (), state = Option<Owner>, arguments = Owner)]
impl ChoiceActor {
    async fn pre_start(
        &self,
        me: ActorRef<()>,
        owner: Owner,
    ) -> Result<Option<Owner>, ActorProcessingErr> {
        owner.settle(); // the first batch is applied before anyone can see the choice (R44)
        me.cast(())?;
        Ok(Some(owner))
    }

    async fn handle(
        &self,
        me: ActorRef<()>,
        _: (),
        owner: &mut Option<Owner>,
    ) -> Result<(), ActorProcessingErr> {
        if let Some(owner) = owner.take() {
            owner.tend().await;
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
