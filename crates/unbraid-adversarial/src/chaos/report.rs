//! What a run found, as a table and as JSON.

use std::{collections::BTreeMap, fmt, time::Duration};

use serde_json::{Value, json};

use super::{
    Options,
    checker::{Allowed, Finish, Got, Kind, ViewEnd, Violation},
    faults::{FaultKind, Possible},
    streams::{Received, State, Stream},
};

/// The sums of all rounds.
#[derive(Debug, Default)]
pub(super) struct Totals {
    pub(super) rounds: usize,
    pub(super) faults: BTreeMap<FaultKind, usize>,
    pub(super) created: usize,
    pub(super) generations: usize,
    pub(super) readers: usize,
    pub(super) unborn: usize,
    pub(super) connections: usize,
    pub(super) events: usize,
    pub(super) bytes: usize,
    pub(super) ends: BTreeMap<String, usize>,
    pub(super) slowest_end: Duration,
    /// Generations that were requested again, because an emptied log had forgotten the key of the first request.
    pub(super) forgotten_keys: usize,
    /// Generations that were requested again, because the gateway of the first request died before its stream was in the log.
    pub(super) taken_over: usize,
    pub(super) found: Vec<Found>,
}

/// A violation, and where it was found.
#[derive(Debug)]
pub(super) struct Found {
    round: u64,
    stream: Option<(u64, String)>,
    view: String,
    ids: String,
    allowed: String,
    pub(super) faults: Vec<(FaultKind, Duration, Duration, usize)>,
    violation: Violation,
}

impl Found {
    pub(super) fn of_round(round: u64, violation: Violation) -> Self {
        Self {
            round,
            stream: None,
            view: String::new(),
            ids: String::new(),
            allowed: String::new(),
            faults: Vec::new(),
            violation,
        }
    }

    pub(super) fn new(
        round: u64,
        stream: &Stream,
        received: Option<&Received>,
        violation: Violation,
        allowed: &Allowed,
    ) -> Self {
        let id = stream.id().unwrap_or("-").to_owned();
        Self {
            stream: Some((stream.answer.number, id)),
            view: received.map_or(String::new(), |received| received.view.path()),
            ids: received.map_or(String::new(), |received| {
                received.update(|state| ids(&state.got))
            }),
            allowed: format!("{allowed:?}"),
            ..Self::of_round(round, violation)
        }
    }

    fn json(&self) -> Value {
        let faults = self.faults.iter().map(|(kind, at, length, target)| {
            json!({ "kind": kind.as_str(), "at_ms": at.as_millis(), "length_ms": length.as_millis(), "target": target })
        });
        json!({
            "kind": self.violation.kind.as_str(),
            "round": self.round,
            "stream": self.stream.as_ref().map(|(number, id)| json!({ "number": number, "id": id })),
            "view": self.view,
            "detail": self.violation.detail,
            "ids": self.ids,
            "allowed": self.allowed,
            "faults": faults.collect::<Vec<_>>(),
        })
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "violation in round {}: {}", self.round, self.violation)?;
        match &self.stream {
            Some((number, id)) => write!(
                f,
                "; stream {number}, id {id}, {}, ids {}; {}",
                self.view, self.ids, self.allowed
            ),
            None => Ok(()),
        }
    }
}

/// The ids of each connection, with ranges: `0@2: 1-7 9`.
fn ids(got: &[Got]) -> String {
    let mut text = String::new();
    let mut connection = None;
    let mut range: Option<(u64, u64)> = None;
    let flush = |range: &mut Option<(u64, u64)>, text: &mut String| {
        if let Some((first, last)) = range.take() {
            let part = if first == last {
                format!(" {first}")
            } else {
                format!(" {first}-{last}")
            };
            text.push_str(&part);
        }
    };
    for event in got {
        if connection != Some(event.connection) {
            flush(&mut range, &mut text);
            connection = Some(event.connection);
            let connection = format!(" | {}@{}:", event.connection, event.gateway);
            text.push_str(&connection);
        }
        match (&mut range, event.id) {
            (Some((_, last)), Some(id)) if *last + 1 == id => *last = id,
            (range, id) => {
                flush(range, &mut text);
                *range = id.map(|id| (id, id));
            }
        }
    }
    flush(&mut range, &mut text);
    text.trim_start_matches(" | ").to_owned()
}

impl Totals {
    /// How many processes were killed.
    pub(super) fn kills(&self) -> usize {
        let kills = self.faults.iter().filter(|(kind, _)| kind.is_kill());
        kills.map(|(_, count)| count).sum()
    }

    pub(super) fn add_reader(&mut self, state: &State) {
        self.readers += 1;
        self.unborn += usize::from(state.is_unborn);
        self.connections += state.connections;
        self.events += state.got.len();
        self.bytes += state.got.iter().map(|got| got.data.len()).sum::<usize>();
    }

    pub(super) fn add_end(&mut self, finish: Finish, end: ViewEnd) {
        let end = match (finish, end) {
            (Finish::Ended, ViewEnd::Done) => "[DONE]".into(),
            (Finish::Ended, ViewEnd::Error(code)) => code,
            (Finish::Gone(status), _) => format!("gone ({status})"),
            (Finish::NothingLeft, _) => "nothing left (204)".into(),
            (Finish::Hung | Finish::Ended, _) => "hung".into(),
        };
        *self.ends.entry(end).or_default() += 1;
    }

    fn count(&self, kinds: &[Kind]) -> usize {
        let found = self
            .found
            .iter()
            .filter(|found| kinds.contains(&found.violation.kind));
        found.count()
    }

    fn bytes_of(&self, kinds: &[Kind]) -> usize {
        let found = self
            .found
            .iter()
            .filter(|found| kinds.contains(&found.violation.kind));
        found.map(|found| found.violation.bytes).sum()
    }

    /// The figures of the verdict.
    fn verdict(&self) -> [(&'static str, usize); 7] {
        let verdict = [
            (
                "bytes lost",
                self.bytes_of(&[Kind::Lost, Kind::TruncatedDone]),
            ),
            ("bytes delivered twice", self.bytes_of(&[Kind::Twice])),
            ("readers hung", self.count(&[Kind::Hung])),
            (
                "generations requested twice",
                self.count(&[Kind::RequestedTwice]),
            ),
            (
                "producer_lost without a cause",
                self.count(&[Kind::ProducerLost]),
            ),
            (
                "clean [DONE] on a truncated answer",
                self.count(&[Kind::TruncatedDone]),
            ),
        ];
        let others = self.found.len()
            - self.count(&[
                Kind::Lost,
                Kind::TruncatedDone,
                Kind::Twice,
                Kind::Hung,
                Kind::RequestedTwice,
                Kind::ProducerLost,
            ]);
        let [a, b, c, d, e, f] = verdict;
        [a, b, c, d, e, f, ("other violations", others)]
    }
}

/// The result of a run.
#[derive(Debug)]
pub struct Summary {
    pub(super) totals: Totals,
    pub(super) options: Options,
    pub(super) possible: Possible,
    pub(super) elapsed: Duration,
    /// Where the output of the gateways was kept, if there was a violation.
    pub(super) folder: Option<String>,
}

/// How many violations of each kind are described.
const DESCRIBED: usize = 3;

impl Summary {
    /// Whether no rule was broken.
    pub fn is_clean(&self) -> bool {
        self.totals.found.is_empty()
    }

    /// How many processes were killed.
    pub fn kills(&self) -> usize {
        self.totals.kills()
    }

    /// Everything, for a program.
    pub fn json(&self) -> Value {
        let totals = &self.totals;
        let faults = totals
            .faults
            .iter()
            .map(|(kind, count)| (kind.as_str().to_owned(), json!(count)));
        let verdict = totals
            .verdict()
            .map(|(name, count)| (name.to_owned(), json!(count)));
        json!({
            "log": self.options.log.as_str(),
            "seed": self.options.seed,
            "lease_ms": self.options.lease.as_millis(),
            "elapsed_s": self.elapsed.as_secs(),
            "rounds": totals.rounds,
            "kills": totals.kills(),
            "faults": serde_json::Map::from_iter(faults),
            "streams": totals.created,
            "generations": totals.generations,
            "readers": totals.readers - totals.unborn,
            "connections": totals.connections,
            "events": totals.events,
            "bytes": totals.bytes,
            "ends": totals.ends,
            "forgotten_keys": totals.forgotten_keys,
            "taken_over": totals.taken_over,
            "slowest_end_ms": totals.slowest_end.as_millis(),
            "verdict": serde_json::Map::from_iter(verdict),
            "violations": totals.found.iter().map(Found::json).collect::<Vec<_>>(),
            "output": self.folder,
        })
    }

    /// The faults that this machine or this log cannot have, and why.
    fn left_out(&self) -> Vec<String> {
        if self.options.log.broker().is_none() {
            return vec![
                "not injected: faults of the broker and the network, which this log does not have"
                    .into(),
            ];
        }
        let absent = FaultKind::ALL
            .into_iter()
            .filter(|&kind| !self.possible.has(kind));
        let reason = |kind| match kind {
            FaultKind::GatewayClock => "libfaketime is not installed (apt-get install faketime)",
            _ => "no tmpfs can be mounted",
        };
        absent
            .map(|kind| format!("not injected: {}: {}", kind.as_str(), reason(kind)))
            .collect()
    }

    fn fmt_clients(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let totals = &self.totals;
        writeln!(f, "\n| clients | |\n|---|--:|")?;
        for (name, count) in [
            ("streams", totals.created),
            ("readers", totals.readers - totals.unborn),
            ("connections", totals.connections),
            ("events", totals.events),
            ("bytes", totals.bytes),
            (
                "requested again after the log was emptied",
                totals.forgotten_keys,
            ),
            (
                "requested again after the gateway of the first request died",
                totals.taken_over,
            ),
        ] {
            writeln!(f, "| {name} | {count} |")?;
        }
        for (end, count) in &totals.ends {
            writeln!(f, "| ended: {end} | {count} |")?;
        }
        writeln!(
            f,
            "| slowest end after everything worked again | {} ms |",
            totals.slowest_end.as_millis()
        )
    }

    /// The first violations of each kind, and how many more there are.
    fn fmt_violations(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut described: BTreeMap<Kind, usize> = BTreeMap::new();
        for found in &self.totals.found {
            let count = described.entry(found.violation.kind).or_default();
            *count += 1;
            if *count > DESCRIBED {
                continue;
            }
            writeln!(f, "\nseed {}, {found}", self.options.seed)?;
            for (kind, at, length, target) in &found.faults {
                writeln!(
                    f,
                    "  {:5} ms: {}, {} ms, target {target}",
                    at.as_millis(),
                    kind.as_str(),
                    length.as_millis()
                )?;
            }
        }
        for (kind, count) in described {
            if count > DESCRIBED {
                writeln!(
                    f,
                    "\n{} more violations of the kind {}",
                    count - DESCRIBED,
                    kind.as_str()
                )?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            totals,
            options,
            elapsed,
            ..
        } = self;
        writeln!(
            f,
            "log {}, seed {}, lease {:?}, {} gateways: {} kills in {} rounds, {} s",
            options.log.as_str(),
            options.seed,
            options.lease,
            options.gateways(),
            totals.kills(),
            totals.rounds,
            elapsed.as_secs()
        )?;
        writeln!(f, "\n| fault | count |\n|---|--:|")?;
        for (kind, count) in &totals.faults {
            writeln!(f, "| {} | {count} |", kind.as_str())?;
        }
        for line in self.left_out() {
            writeln!(f, "{line}")?;
        }
        self.fmt_clients(f)?;
        writeln!(f, "\n| verdict | |\n|---|--:|")?;
        for (name, count) in totals.verdict() {
            writeln!(f, "| {name} | {count} |")?;
        }
        self.fmt_violations(f)?;
        match &self.folder {
            Some(folder) => writeln!(f, "\nthe output of the gateways: {folder}"),
            None => Ok(()),
        }
    }
}
