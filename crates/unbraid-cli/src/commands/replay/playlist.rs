//! Which recording answers which request.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use clap::ValueEnum;
use tokio::sync::Notify;

use super::{recording::Recording, request::Wanted};
use crate::input::Input;

/// What answers a request when every recording that fits it has been served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum AfterLast {
    /// Start again with the first recording
    First,
    /// Repeat the last recording
    Last,
    /// Respond with status 404
    Error,
}

/// The recordings in the order of the command line.
#[derive(Debug)]
pub(super) struct Playlist {
    files: Vec<Input>,
    after_last: AfterLast,
    slots: Mutex<Vec<Slot>>,
    /// A recording was completed or given up.
    changed: Notify,
}

/// One recording.
#[derive(Debug)]
struct Slot {
    state: State,
    /// How many requests it has answered.
    served: u64,
}

#[derive(Debug, Clone)]
enum State {
    /// The file does not exist yet.
    Missing,
    /// A response is being written to the file.
    Recording,
    Ready(Arc<Recording>),
}

/// What the request has to do that was assigned to a slot.
#[derive(Debug)]
pub(super) enum Assignment {
    Serve(Arc<Recording>),
    /// Record the response of the provider, then call [`Playlist::complete`].
    Record,
}

impl Playlist {
    /// Creates a list of these files. One without a recording is still to be recorded.
    pub(super) fn new(files: Vec<(Input, Option<Recording>)>, after_last: AfterLast) -> Self {
        let (files, recordings): (Vec<Input>, Vec<Option<Recording>>) = files.into_iter().unzip();
        let slot = |recording: Option<Recording>| Slot {
            state: recording.map_or(State::Missing, |recording| State::Ready(recording.into())),
            served: 0,
        };
        Self {
            files,
            after_last,
            slots: Mutex::new(recordings.into_iter().map(slot).collect()),
            changed: Notify::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.files.len()
    }

    /// The file of a slot.
    pub(super) fn file(&self, slot: usize) -> Option<&Input> {
        self.files.get(slot)
    }

    /// Selects the slot for a request, or `None` if no recording is left for it. A request without a turn is served, but the
    /// next one gets the same recording.
    pub(super) fn select(&self, request: Wanted<'_>, takes_turn: bool) -> Option<usize> {
        let mut slots = self.lock();
        let candidates = candidates(&slots, request);
        let served = |slot: &usize| slots.get(*slot).map_or(0, |slot| slot.served);
        // The first of those that were served least often.
        let next = *candidates.iter().min_by_key(|slot| served(slot))?;
        let selected = match (served(&next), self.after_last) {
            (0, _) | (_, AfterLast::First) => next,
            (_, AfterLast::Last) => *candidates.last()?,
            (_, AfterLast::Error) => return None,
        };
        if takes_turn && let Some(slot) = slots.get_mut(selected) {
            slot.served += 1;
        }
        Some(selected)
    }

    /// Waits until the recording of a slot is available, or until this request is the one to record it.
    pub(super) async fn assign(&self, slot: usize) -> Assignment {
        loop {
            // Created before the state is read, so that no change is missed.
            let changed = self.changed.notified();
            if let Some(slot) = self.lock().get_mut(slot) {
                match &slot.state {
                    State::Ready(recording) => return Assignment::Serve(Arc::clone(recording)),
                    State::Recording => {}
                    State::Missing => {
                        slot.state = State::Recording;
                        return Assignment::Record;
                    }
                }
            }
            changed.await;
        }
    }

    /// Ends the recording of a slot. Without a recording its file is still missing, and the next request records it.
    pub(super) fn complete(&self, slot: usize, recording: Option<Recording>) {
        if let Some(slot) = self.lock().get_mut(slot) {
            match recording {
                Some(recording) => slot.state = State::Ready(recording.into()),
                None => {
                    slot.state = State::Missing;
                    slot.served = 0;
                }
            }
        }
        self.changed.notify_waiters();
    }

    /// Waits until no response is being recorded.
    pub(super) async fn idle(&self) {
        loop {
            let changed = self.changed.notified();
            let is_recording = |slot: &Slot| matches!(slot.state, State::Recording);
            if !self.lock().iter().any(is_recording) {
                return;
            }
            changed.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Slot>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The slots that fit a request best, of those in its dialect: those recorded for it, or else those of its model and the missing
/// ones, or else all.
fn candidates(slots: &[Slot], request: Wanted<'_>) -> Vec<usize> {
    let is_of_dialect = |state: &State| match state {
        State::Ready(recording) => request.api.has_dialect(recording.dialect),
        State::Missing | State::Recording => true,
    };
    let matching = |fits: &dyn Fn(&State) -> bool| {
        let slots = slots.iter().enumerate();
        let fitting = slots.filter(|(_, slot)| is_of_dialect(&slot.state) && fits(&slot.state));
        fitting
            .map(|(position, _)| position)
            .collect::<Vec<usize>>()
    };
    let exact = matching(&|state| match state {
        State::Ready(recording) => recording.answers_request(request.body),
        State::Missing | State::Recording => false,
    });
    if !exact.is_empty() {
        return exact;
    }
    let of_model = matching(&|state| match state {
        State::Ready(recording) => recording.is_of_model(request.model),
        State::Missing | State::Recording => true,
    });
    match of_model.is_empty() {
        true => matching(&|_| true),
        false => of_model,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use unbraid_core::Config;

    use super::{super::endpoint::Api, AfterLast, Assignment, Input, Playlist, Recording, Wanted};

    fn recording(model: &str) -> Recording {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.sse");
        let stream = format!(
            "data: {{\"model\":\"{model}\",\"choices\":[{{\"index\":0,\"delta\":{{}}}}]}}\n\n"
        );
        std::fs::write(&path, stream).unwrap();
        Recording::load_file(&path, &Config::default()).unwrap()
    }

    fn playlist(models: &[Option<&str>], after_last: AfterLast) -> Playlist {
        let file = |model: &Option<&str>| (Input::Stdin, model.map(recording));
        Playlist::new(models.iter().map(file).collect(), after_last)
    }

    fn wanted(body: &Value) -> Wanted<'_> {
        Wanted {
            body,
            model: body["model"].as_str(),
            api: Api::OpenAi,
        }
    }

    #[test]
    fn a_recording_answers_in_its_dialect_only() {
        let playlist = playlist(&[Some("m")], AfterLast::First);
        let body = json!({ "model": "m" });
        let at = |api| {
            playlist.select(
                Wanted {
                    api,
                    ..wanted(&body)
                },
                true,
            )
        };
        assert_eq!(at(Api::Anthropic), None);
        assert_eq!(at(Api::OpenAi), Some(0));
    }

    #[track_caller]
    fn check(playlist: &Playlist, requests: &[Value], expected: &[Option<usize>]) {
        let selected = requests
            .iter()
            .map(|request| playlist.select(wanted(request), true));
        assert_eq!(selected.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn recordings_are_served_in_turn() {
        let models = [Some("m"), Some("m"), Some("m")];
        let requests = vec![json!({ "model": "m" }); 5];
        let first = playlist(&models, AfterLast::First);
        check(
            &first,
            &requests,
            &[Some(0), Some(1), Some(2), Some(0), Some(1)],
        );
        let last = playlist(&models, AfterLast::Last);
        check(
            &last,
            &requests,
            &[Some(0), Some(1), Some(2), Some(2), Some(2)],
        );
        let error = playlist(&models, AfterLast::Error);
        check(&error, &requests, &[Some(0), Some(1), Some(2), None, None]);
    }

    #[test]
    fn a_model_has_its_own_recordings_in_turn() {
        let playlist = playlist(&[Some("a"), Some("b"), Some("a")], AfterLast::First);
        let requests = ["a", "b", "b", "a", "a"].map(|model| json!({ "model": model }));
        check(
            &playlist,
            &requests,
            &[Some(0), Some(1), Some(1), Some(2), Some(0)],
        );
    }

    #[test]
    fn an_unknown_model_gets_all_recordings_in_turn() {
        let playlist = playlist(&[Some("a"), Some("b")], AfterLast::First);
        let requests = [json!({ "model": "x" }), json!({}), json!({ "model": 7 })];
        check(&playlist, &requests, &[Some(0), Some(1), Some(0)]);
    }

    #[test]
    fn a_request_without_a_turn_leaves_the_recording_to_the_next() {
        let playlist = playlist(&[Some("a"), Some("b")], AfterLast::Error);
        assert_eq!(playlist.select(wanted(&json!({})), false), Some(0));
        check(
            &playlist,
            &[json!({}), json!({}), json!({})],
            &[Some(0), Some(1), None],
        );
    }

    #[tokio::test]
    async fn a_missing_recording_is_made_once() {
        let playlist = playlist(&[Some("a"), None], AfterLast::First);
        let requests = vec![json!({ "model": "a" }); 2];
        check(&playlist, &requests, &[Some(0), Some(1)]);
        assert!(matches!(playlist.assign(1).await, Assignment::Record));
        let waits = playlist.assign(1);
        let fails = async { playlist.complete(1, None) };
        let (assigned, ()) = futures::join!(waits, fails);
        assert!(
            matches!(assigned, Assignment::Record),
            "the next request records it"
        );
        check(&playlist, &requests[..1], &[Some(1)]);
        playlist.complete(1, Some(recording("a")));
        assert!(matches!(playlist.assign(1).await, Assignment::Serve(_)));
        playlist.idle().await;
    }
}
