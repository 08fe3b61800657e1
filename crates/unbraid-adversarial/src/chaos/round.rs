//! One round: streams, their clients, the faults, and the verdict once everything works again.

mod monitor;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures::future::join_all;
use hyper::Method;
use monitor::Monitor;
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep},
};
use unbraid_testkit::cut::Rng;

use super::{
    CannotRun, Options, Plan,
    answer::{Answer, View},
    broker::Broker,
    checker::{self, Finish, Kind, Violation},
    client,
    faults::{self, Fault, Injector, Locks, Possible},
    gateways::{Gateways, Restart},
    history::History,
    reader::{Clients, Reader},
    report::{Found, Totals},
    streams::{Received, Stream, Streams},
    upstream::Upstream,
};

/// What all rounds share.
#[derive(Debug)]
pub(super) struct Stage {
    pub(super) gateways: Arc<Gateways>,
    pub(super) broker: Option<Broker>,
    pub(super) upstream: Upstream,
    pub(super) possible: Possible,
}

/// How many clients a stream has: one that creates it, and others.
const READERS: usize = 5;

/// How long streams begin after the start of a round, in milliseconds.
const SPREAD_MS: usize = 5_000;

/// Runs one round, of which the first has the number 1, and adds what happened to the totals.
pub(super) async fn run(
    stage: &Stage,
    options: &Options,
    number: u64,
    totals: &mut Totals,
) -> Result<(), CannotRun> {
    let seed = options.seed_of(number);
    let mut rng = Rng::new(seed);
    let history = Arc::new(History::new(options.lease, options.log.is_durable()));
    let streams = streams(options, number, &mut rng);
    let answers = streams
        .0
        .iter()
        .map(|stream| (stream.answer.number, Arc::clone(&stream.answer)));
    stage
        .upstream
        .begin(answers.collect(), Arc::clone(&history));
    let clients = Arc::new(Clients {
        gateways: Arc::clone(&stage.gateways),
        history: Arc::clone(&history),
        is_shared: options.log.broker().is_some(),
        patience: if options.log.broker().is_some() {
            options.lease
        } else {
            Duration::from_millis(500)
        },
    });
    let faults = match options.plan {
        Plan::Chaos => {
            faults::plan(
                stage.possible,
                options.kills.saturating_sub(totals.kills()),
                options.lease,
                &mut rng,
            )
            .1
        }
        Plan::Rolling => Vec::new(),
    };
    let round = Round {
        stage,
        options,
        history,
        streams,
        clients,
        faults,
    };
    round.run(number, &mut rng, totals).await
}

fn streams(options: &Options, round: u64, rng: &mut Rng) -> Streams {
    let count = options.clients.div_ceil(READERS) as u64;
    let seed = rng.next_u64();
    let answers = (0..count).map(|stream| Answer::new(round * 10_000 + stream, seed));
    Streams(
        answers
            .map(|answer| Arc::new(Stream::new(answer)))
            .collect(),
    )
}

struct Round<'a> {
    stage: &'a Stage,
    options: &'a Options,
    history: Arc<History>,
    streams: Streams,
    clients: Arc<Clients>,
    faults: Vec<Fault>,
}

impl Round<'_> {
    async fn run(&self, number: u64, rng: &mut Rng, totals: &mut Totals) -> Result<(), CannotRun> {
        let start = Instant::now();
        let readers = self.start_clients(rng);
        let monitor = Monitor::new(self.options, &self.history, &self.stage.gateways);
        let done = Mutex::new(BTreeMap::new());
        let (injected, watched) = tokio::join!(self.disturb(start, &done), monitor.watch(&readers));
        injected?;
        for (gateway, code) in &watched.exited {
            let detail = format!(
                "gateway {} with code {code}: see {}",
                gateway.slot,
                self.stage.gateways.output(gateway.slot).display()
            );
            totals.found.push(Found::of_round(
                number,
                Violation::new(Kind::GatewayExited, detail),
            ));
            self.stage
                .gateways
                .start(gateway.slot, &self.stage.upstream, Restart::default())
                .await?;
        }
        // Everything works again: each stream is read once more.
        let last = self.read_again(rng);
        let quiet = monitor.watch(&last).await;
        let received = || readers.iter().chain(&last).map(|(received, _)| received);
        totals.slowest_end = totals.slowest_end.max(watched.slowest).max(quiet.slowest);
        totals.rounds += 1;
        for (kind, count) in done.into_inner().unwrap_or_else(PoisonError::into_inner) {
            *totals.faults.entry(kind).or_default() += count;
        }
        let before = totals.found.len();
        for stream in &self.streams.0 {
            let of_stream: Vec<_> = received()
                .filter(|received| Arc::ptr_eq(&received.stream, stream))
                .collect();
            self.judge(number, stream, &of_stream, totals);
        }
        self.check_completed(number, &last, totals).await;
        for found in totals.found.iter_mut().skip(before) {
            found.faults = self
                .faults
                .iter()
                .map(|fault| (fault.kind, fault.at, fault.length, fault.target))
                .collect();
        }
        Ok(())
    }

    fn start_clients(&self, rng: &mut Rng) -> Vec<(Arc<Received>, JoinHandle<()>)> {
        let mut readers = Vec::new();
        for stream in &self.streams.0 {
            let delay = Duration::from_millis(rng.below(SPREAD_MS) as u64);
            readers.push(
                self.start(stream, View::Combined, rng, |reader| async move {
                    sleep(delay).await;
                    reader.create().await;
                }),
            );
            for _ in 1..READERS {
                let view = match rng.chance(0.4) {
                    true => View::Combined,
                    false => View::Choice(rng.below(stream.answer.choices as usize) as u32),
                };
                readers.push(self.start(stream, view, rng, Reader::read));
            }
        }
        readers
    }

    fn start<F>(
        &self,
        stream: &Arc<Stream>,
        view: View,
        rng: &mut Rng,
        read: impl FnOnce(Reader) -> F,
    ) -> (Arc<Received>, JoinHandle<()>)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let received = Arc::new(Received::new(Arc::clone(stream), view));
        let reader = Reader {
            clients: Arc::clone(&self.clients),
            received: Arc::clone(&received),
            rng: Rng::new(rng.next_u64()),
            cursor: 0,
        };
        (received, tokio::spawn(read(reader)))
    }

    fn read_again(&self, rng: &mut Rng) -> Vec<(Arc<Received>, JoinHandle<()>)> {
        let streams = self.streams.0.iter().filter(|stream| stream.id().is_some());
        let readers = streams.map(|stream| {
            let view = match rng.chance(0.5) {
                true => View::Combined,
                false => View::Choice(rng.below(stream.answer.choices as usize) as u32),
            };
            self.start(stream, view, rng, |mut reader| async move {
                reader.resume().await
            })
        });
        readers.collect()
    }

    async fn disturb(
        &self,
        start: Instant,
        done: &Mutex<BTreeMap<faults::FaultKind, usize>>,
    ) -> Result<(), CannotRun> {
        let gateways = &self.stage.gateways;
        if self.options.plan == Plan::Rolling {
            return self.roll().await;
        }
        let injector = Injector {
            gateways,
            broker: self.stage.broker.as_ref(),
            upstream: &self.stage.upstream,
            history: &self.history,
            streams: &self.streams,
            done,
            lease: self.options.lease,
            locks: &Locks::new(gateways.len()),
        };
        injector.run(&self.faults, start).await
    }

    /// Restarts one gateway after the other, each once its generations have ended.
    async fn roll(&self) -> Result<(), CannotRun> {
        for slot in 0..self.stage.gateways.len() {
            sleep(Duration::from_secs(2)).await;
            let code = self
                .stage
                .gateways
                .drain(slot, Duration::from_secs(40))
                .await;
            if code != Some(0) {
                return Err(CannotRun::new(format!(
                    "a gateway that drained exited with {code:?}"
                )));
            }
            self.stage
                .gateways
                .start(slot, &self.stage.upstream, Restart::default())
                .await?;
        }
        Ok(())
    }

    fn judge(
        &self,
        round: u64,
        stream: &Arc<Stream>,
        readers: &[&Arc<Received>],
        totals: &mut Totals,
    ) {
        let number = stream.answer.number;
        let allowed = self.history.allowed(number);
        let requests = self.history.requests(number);
        totals.generations += requests;
        totals.created += usize::from(stream.id().is_some());
        let mut violations = Vec::new();
        let mut found = |received: Option<&Received>, violation| {
            violations.push(Found::new(round, stream, received, violation, &allowed));
        };
        // A key that the broker has forgotten cannot prevent a second request.
        let is_forgotten = self.history.has_forgotten_the_request(number);
        if requests > 1 && is_forgotten {
            totals.forgotten_keys += 1;
        } else if requests > 1 && self.history.was_taken_over(number) {
            totals.taken_over += 1;
        } else if requests > 1 {
            found(
                None,
                Violation::new(Kind::RequestedTwice, format!("{requests} requests")),
            );
        }
        let states: Vec<_> = readers
            .iter()
            .map(|received| (received.view, received.update(|state| state.clone())))
            .collect();
        for violation in checker::compare(
            states.iter().map(|(view, state)| (*view, &state.got[..])),
            &allowed,
        ) {
            found(None, violation);
        }
        let mut ends = Vec::new();
        for (received, (view, state)) in readers.iter().zip(&states) {
            let Some(finish) = state.finish else { continue };
            let verdict = checker::check(&stream.answer, *view, &state.got, finish, &allowed);
            for mut violation in verdict.violations {
                if let (Kind::Hung, Some(hung)) = (violation.kind, &state.hung) {
                    violation.detail = format!("{}; {hung}", violation.detail);
                }
                found(Some(received), violation);
            }
            ends.push((finish, verdict.end));
        }
        totals.found.extend(violations);
        for (finish, end) in ends {
            totals.add_end(finish, end);
        }
        for (_, state) in &states {
            totals.add_reader(state);
        }
    }

    /// A client that has the last event and connects again gets 204.
    async fn check_completed(
        &self,
        round: u64,
        readers: &[(Arc<Received>, JoinHandle<()>)],
        totals: &mut Totals,
    ) {
        let checks = readers.iter().map(|(received, _)| async move {
            let state = received.update(|state| state.clone());
            let last = state.got.last().and_then(|got| got.id)?;
            (state.finish == Some(Finish::Ended)).then_some(())?;
            let path = format!(
                "/v1/streams/{}/{}",
                received.stream.id()?,
                received.view.path()
            );
            let slot = match self.clients.is_shared {
                true => (last as usize) % self.stage.gateways.len(),
                false => received.stream.home(),
            };
            let headers = [("last-event-id", last.to_string())];
            let response = client::send(
                self.stage.gateways.address(slot),
                Method::GET,
                &path,
                &headers,
                String::new(),
            )
            .await;
            let status = response.ok()?.status;
            (status != 204).then(|| {
                (
                    received,
                    format!("{status} after id {last} at gateway {slot}"),
                )
            })
        });
        for (received, detail) in join_all(checks).await.into_iter().flatten() {
            let allowed = self.history.allowed(received.stream.answer.number);
            if allowed.beyond_log {
                // The gateway of the producer may have more than the log, and another one sends the log's end.
                continue;
            }
            let violation = Violation::new(Kind::NotComplete, detail);
            totals.found.push(Found::new(
                round,
                &received.stream,
                Some(received),
                violation,
                &allowed,
            ));
        }
    }
}
