//! The reader actor: owns the task of a reader, and supervises its choice actors.
//!
//! It works from its start to its end, and receives no message.

use std::sync::{Mutex, PoisonError};

use ractor::{ActorCell, ActorProcessingErr, ActorRef, ActorRuntime, SupervisionEvent};
use tokio::task::JoinHandle;

use super::{choice_actor::stop_self, start_now};

/// It is not the actor's `State`: that of a dead actor is mailed to its supervisor.
pub(crate) struct ReaderActor(Mutex<Option<OwnedTask>>);

/// A task that belongs to an actor. Dropping this, as a kill of the actor does, ends the task.
///
/// The work could be done in the actor's own task, but each wake-up would pass through the futures of ractor and its ports for
/// messages, which are many cache lines (docs/design/020).
struct OwnedTask(JoinHandle<()>);

impl ReaderActor {
    /// Starts the actor of a reader, whose task is its own from now on.
    pub(crate) fn start(task: JoinHandle<()>) -> Option<ActorCell> {
        let actor = Self(Mutex::new(Some(OwnedTask(task))));
        let (actor, _) = start_now(ActorRuntime::spawn(None, actor, ()))?;
        Some(actor.get_cell())
    }
}

impl OwnedTask {
    /// Waits for its end. It also ends if it is lost with its runtime.
    async fn join(mut self) {
        let _ended = (&mut self.0).await;
    }
}

impl Drop for OwnedTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[ractor::actor(message = (), state = (), arguments = ())]
impl ReaderActor {
    async fn pre_start(&self, _: ActorRef<()>, (): ()) -> Result<(), ActorProcessingErr> {
        Ok(())
    }

    /// A kill ends it like a handler, for which it would need a message first.
    async fn post_start(&self, me: ActorRef<()>, (): &mut ()) -> Result<(), ActorProcessingErr> {
        let task = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(task) = task {
            task.join().await;
        }
        stop_self(&me);
        Ok(())
    }

    /// The default ends the reader with any of its choices.
    async fn handle_supervisor_evt(
        &self,
        _: ActorRef<()>,
        _: SupervisionEvent,
        (): &mut (),
    ) -> Result<(), ActorProcessingErr> {
        Ok(())
    }
}
