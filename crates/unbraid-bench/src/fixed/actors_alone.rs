//! Actors that do nothing: one root, and one linked actor for each choice. No completion with actors can cost less.

use ractor::{Actor, ActorProcessingErr, ActorRef};
use tokio::{runtime::Runtime, task::JoinHandle};

use crate::memory::Measure;

struct Idle;

#[ractor::actor(message = (), state = (), arguments = ())]
impl Idle {
    async fn pre_start(&self, _me: ActorRef<()>, _: ()) -> Result<(), ActorProcessingErr> {
        Ok(())
    }
}

type Started = (ActorRef<()>, JoinHandle<()>);

/// Starts the actors, the root first.
async fn start(choices: usize) -> Vec<Started> {
    let mut actors = Vec::with_capacity(1 + choices);
    let Ok(root) = Actor::spawn(None, Idle, ()).await else {
        return actors;
    };
    let supervisor = root.0.get_cell();
    actors.push(root);
    for _ in 0..choices {
        actors.extend(Actor::spawn_linked(None, Idle, (), supervisor.clone()).await);
    }
    actors
}

/// Starts the actors, stops them, and waits until they have stopped.
#[expect(
    clippy::disallowed_methods,
    reason = "nobody sends them messages, so none can be dropped"
)]
pub(super) async fn start_and_stop(choices: usize) {
    let actors = start(choices).await;
    for (actor, _) in actors.iter().rev() {
        actor.stop(None);
    }
    for (_, ended) in actors.into_iter().rev() {
        let _ended = ended.await;
    }
}

/// The bytes on the heap of such actors.
pub(super) fn held(runtime: &Runtime, measure: Measure, choices: usize) -> f64 {
    const OPEN: usize = 100;
    let mut all = Vec::with_capacity(OPEN);
    let counted = measure(&mut || {
        runtime.block_on(async {
            for _ in 0..OPEN {
                all.push(start(choices).await);
            }
        });
    });
    counted.held as f64 / OPEN as f64
}
