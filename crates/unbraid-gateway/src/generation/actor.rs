//! The actors: one supervisor for each gateway, and one generation actor for each generation.

use std::panic::AssertUnwindSafe;

use futures::FutureExt;
use ractor::{ActorCell, ActorProcessingErr, ActorRef, ActorRuntime, SupervisionEvent};
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument;

use super::Generation;
use crate::error::BuildError;

/// Supervises all generations of a gateway. Each ends on its own, so there is nothing to restart: the provider's connection
/// of a generation that died is gone.
#[derive(Debug)]
struct SupervisorActor;

/// A running supervisor. Dropping the last handle stops it, and with it every generation.
#[derive(Debug)]
pub(crate) struct Supervisor(ActorCell);

impl Supervisor {
    /// Starts the supervisor in the runtime of this thread.
    pub(crate) fn start() -> Result<Self, BuildError> {
        // ractor panics without a runtime.
        tokio::runtime::Handle::try_current().map_err(|_| BuildError::NoRuntime)?;
        let (actor, _) = ActorRuntime::spawn_instant(None, SupervisorActor, ())
            .map_err(|_| BuildError::NoRuntime)?;
        Ok(Self(actor.get_cell()))
    }

    /// Starts a generation. If that fails, the dropped generation has sealed its log.
    pub(crate) fn spawn(&self, generation: Box<Generation>) {
        let id = generation.id().clone();
        let spawned = ActorRuntime::spawn_linked_instant(
            None,
            GenerationActor,
            Some(generation),
            self.0.clone(),
        );
        if spawned.is_err() {
            tracing::error!(%id, "a generation actor could not be started");
        }
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        self.0.kill();
    }
}

#[ractor::actor(message = (), state = (), arguments = ())]
impl SupervisorActor {
    async fn pre_start(&self, _me: ActorRef<()>, (): ()) -> Result<(), ActorProcessingErr> {
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _me: ActorRef<()>,
        event: SupervisionEvent,
        _state: &mut (),
    ) -> Result<(), ActorProcessingErr> {
        // The default would stop the supervisor with its first failed child.
        if let SupervisionEvent::ActorFailed(..) = event {
            tracing::error!("a generation actor failed");
        }
        Ok(())
    }
}

/// Its mailbox takes one message, whose handler reads the upstream until the generation has ended.
#[derive(Debug)]
struct GenerationActor;

#[ractor::actor(message = (), state = Option<Box<Generation>>, arguments = Option<Box<Generation>>)]
impl GenerationActor {
    async fn pre_start(
        &self,
        me: ActorRef<()>,
        generation: Option<Box<Generation>>,
    ) -> Result<Option<Box<Generation>>, ActorProcessingErr> {
        me.cast(())?;
        Ok(generation)
    }

    async fn handle(
        &self,
        me: ActorRef<()>,
        _: (),
        generation: &mut Option<Box<Generation>>,
    ) -> Result<(), ActorProcessingErr> {
        // The owner of the log belongs to a task that the handler's frame owns: ractor mails a dead actor's state to its
        // supervisor. In the handler itself, each delta would pass through what ractor polls for its signals.
        if let Some(generation) = generation.take() {
            let _panics_are_caught = AbortOnDropHandle::new(tokio::spawn(run(generation))).await;
        }
        stop_self(&me);
        Ok(())
    }
}

async fn run(generation: Box<Generation>) {
    // The field of the span is not shown where spans of this level are disabled.
    let id = generation.id().clone();
    let span = tracing::debug_span!("generation", %id);
    let run = AssertUnwindSafe(generation.run()).catch_unwind();
    if run.instrument(span).await.is_err() {
        tracing::error!(%id, "a generation panicked, and was sealed as producer_lost");
    }
}

/// Stops an actor from the last line of its handler.
#[expect(
    clippy::disallowed_methods,
    reason = "the only message has been handled, so none can be dropped"
)]
fn stop_self(me: &ActorRef<()>) {
    me.stop(None);
}

#[cfg(test)]
mod tests;
