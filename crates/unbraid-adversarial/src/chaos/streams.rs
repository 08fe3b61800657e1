//! The streams of a round, and what their readers share.

use std::{
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::sync::watch;
use unbraid_testkit::cut::Rng;

use super::{
    answer::{Answer, View},
    attempts::Attempts,
    checker::{Finish, Got},
};

/// One stream of a round.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) answer: Arc<Answer>,
    id: OnceLock<String>,
    created: watch::Sender<Option<bool>>,
    /// The gateway that created it: the only one that has it, if its log is not shared.
    home: AtomicUsize,
}

impl Stream {
    pub(super) fn new(answer: Answer) -> Self {
        Self {
            answer: Arc::new(answer),
            id: OnceLock::new(),
            created: watch::Sender::new(None),
            home: AtomicUsize::new(0),
        }
    }

    /// Its id, once it was created.
    pub(super) fn id(&self) -> Option<&str> {
        self.id.get().map(String::as_str)
    }

    pub(super) fn home(&self) -> usize {
        self.home.load(Ordering::Relaxed)
    }

    /// The head of its response has arrived.
    pub(super) fn set_created(&self, id: String, home: usize) {
        self.home.store(home, Ordering::Relaxed);
        if self.id.set(id).is_ok() {
            self.created.send_replace(Some(true));
        }
    }

    /// Nobody knows its id.
    pub(super) fn set_failed(&self) {
        if self.id().is_none() {
            self.created.send_replace(Some(false));
        }
    }

    /// Waits until it is known whether it was created.
    pub(super) async fn created(&self) -> bool {
        let mut created = self.created.subscribe();
        let known = created.wait_for(Option::is_some).await;
        known.is_ok_and(|known| *known == Some(true))
    }
}

/// The streams of a round.
#[derive(Debug, Default)]
pub(super) struct Streams(pub(super) Vec<Arc<Stream>>);

impl Streams {
    /// One of the streams that were created.
    pub(super) fn random_open(&self, rng: &mut Rng) -> Option<&Arc<Stream>> {
        let open: Vec<_> = self
            .0
            .iter()
            .filter(|stream| stream.id().is_some())
            .collect();
        open.get(rng.below(open.len())).copied()
    }
}

/// What one client has received so far. The harness reads it even if the client hangs.
#[derive(Debug)]
pub(super) struct Received {
    pub(super) stream: Arc<Stream>,
    pub(super) view: View,
    state: Mutex<State>,
    /// The gateway that it reads from, or tries to.
    pub(super) gateway: AtomicUsize,
}

#[derive(Debug, Default, Clone)]
pub(super) struct State {
    pub(super) got: Vec<Got>,
    pub(super) connections: usize,
    pub(super) finish: Option<Finish>,
    /// Whether it has begun to read.
    pub(super) is_reading: bool,
    /// Whether it ended without a stream to read.
    pub(super) is_unborn: bool,
    pub(super) attempts: Attempts,
    /// How long it waited for an end, and for what, when the harness ended it.
    pub(super) hung: Option<String>,
}

impl Received {
    pub(super) fn new(stream: Arc<Stream>, view: View) -> Self {
        Self {
            stream,
            view,
            state: Mutex::default(),
            gateway: AtomicUsize::new(0),
        }
    }

    pub(super) fn update<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn is_done(&self) -> bool {
        self.update(|state| state.finish.is_some() || state.is_unborn)
    }

    /// The harness ends it, because it has waited for its end for too long.
    pub(super) fn hang(&self, waited: Duration) {
        self.update(|state| {
            if state.finish.is_none() && !state.is_unborn {
                state.finish = Some(Finish::Hung);
                let attempts = &state.attempts;
                state.hung = Some(format!("waited for {waited:.1?}, {attempts}"));
            }
        });
    }

    /// The first end is kept.
    pub(super) fn finish(&self, finish: Finish) {
        self.update(|state| {
            if !state.is_unborn {
                state.finish.get_or_insert(finish);
            }
        });
    }
}
