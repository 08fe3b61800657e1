//! Runs every case against the engine, and the recorded stream against `unbraid replay`, with the same checks.

use std::{collections::BTreeMap, fs, path::PathBuf, process::Command, sync::OnceLock};

use crate::{
    UNBRAID,
    answer::Answer,
    case::{self, Case},
    check::check,
    engine::{self, Server},
    prepared, run,
};

/// A case, the file with the stream that answered it, and the choices of the answer.
#[derive(Debug)]
pub(crate) struct Recording {
    pub(crate) case: Case,
    pub(crate) answer: Answer,
    pub(crate) file: PathBuf,
}

/// All cases, recorded once. Returns `None` without an engine.
pub(crate) fn all() -> Option<&'static [Recording]> {
    static ALL: OnceLock<Option<Vec<Recording>>> = OnceLock::new();
    let record_all = || {
        let base_url = engine::shared()?;
        let cases = case::all().into_iter();
        Some(cases.map(|case| record(base_url, case)).collect())
    };
    ALL.get_or_init(record_all).as_deref()
}

fn record(base_url: &str, case: Case) -> Recording {
    let (answer, bytes) = run(check(base_url, &case));
    let dir = prepared().join("recordings");
    fs::create_dir_all(&dir).unwrap();
    let file = dir.join(format!("{}.sse", case.name));
    fs::write(&file, &bytes).unwrap();
    Recording { case, answer, file }
}

/// Serves a recording, with these further arguments.
pub(crate) fn replay(recording: &Recording, args: &[&str]) -> Server {
    let mut command = Command::new(UNBRAID);
    Server::start(command.arg("replay").arg(&recording.file).args(args))
}

#[test]
fn choices_equal_those_of_the_response_that_is_not_streamed() {
    let Some(recordings) = all() else { return };
    let mut shown = BTreeMap::new();
    for Recording { case, answer, .. } in recordings {
        *shown.entry(case.kind()).or_insert(false) |= (case.shows)(answer);
    }
    let missing: Vec<_> = shown.iter().filter(|(_, shown)| !**shown).collect();
    assert!(
        missing.is_empty(),
        "no answer shows the intended property: {missing:?}"
    );
}

#[test]
fn replayed_answers_are_equal() {
    let Some(recordings) = all() else { return };
    let cuts: [&[&str]; 3] = [&[], &["--cut", "7"], &["--cut", "1400"]];
    for (recording, cut) in recordings.iter().zip(cuts.into_iter().cycle()) {
        let server = replay(recording, cut);
        let (answer, bytes) = run(check(&server.base_url, &recording.case));
        assert_eq!(answer, recording.answer, "{}", recording.case.name);
        assert_eq!(
            bytes,
            fs::read(&recording.file).unwrap(),
            "{}",
            recording.case.name
        );
    }
}
