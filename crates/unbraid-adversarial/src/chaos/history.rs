//! What happened in a round, and what it excuses.

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use super::checker::Allowed;

/// One process of a gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct GatewayId {
    pub(super) slot: usize,
    /// How often the gateway has been started before.
    pub(super) incarnation: usize,
}

/// A fault with a beginning and an end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    from: Instant,
    until: Option<Instant>,
}

impl Window {
    fn open() -> Self {
        Self {
            from: Instant::now(),
            until: None,
        }
    }

    fn end(&self) -> Instant {
        self.until.unwrap_or_else(Instant::now)
    }

    fn length(&self) -> Duration {
        self.end() - self.from
    }
}

/// What prevents a producer from reaching its log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Away {
    /// It is suspended.
    Suspended,
    /// It runs, without a connection to the log.
    Partitioned,
}

/// What is wrong with the broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outage {
    /// It does not answer in time.
    Down,
    /// It is down, and forgets everything.
    Emptied,
    /// Connections are cut, and can be opened again.
    Cuts,
}

/// What happened, with its times.
#[derive(Debug)]
pub(super) struct History {
    lease: Duration,
    /// Whether the log outlives a gateway.
    is_durable: bool,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    generations: HashMap<u64, Vec<Generation>>,
    killed: HashMap<GatewayId, Instant>,
    /// When each gateway was started again after it was killed.
    started: HashMap<usize, Instant>,
    away: Vec<(GatewayId, Away, Window)>,
    outages: Vec<(Outage, Window)>,
    cancelled: HashMap<u64, BTreeSet<u32>>,
    erased: BTreeSet<u64>,
}

/// One request at the upstream.
#[derive(Debug, Clone, Copy)]
struct Generation {
    producer: GatewayId,
    started: Instant,
    ended: Option<Instant>,
}

/// A window that can be closed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Token(usize);

/// How long a healthy producer may need to seal its log after the upstream's end.
const SEAL_TIME: Duration = Duration::from_millis(1_500);

/// How long the effects of an outage may last: the longest wait between two attempts to append, and a margin.
const RECOVERY: Duration = Duration::from_secs(3);

impl History {
    pub(super) fn new(lease: Duration, is_durable: bool) -> Self {
        Self {
            lease,
            is_durable,
            inner: Mutex::default(),
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The upstream begins to answer a request.
    pub(super) fn generation_started(&self, number: u64, producer: GatewayId) -> Token {
        let mut inner = self.inner();
        let generations = inner.generations.entry(number).or_default();
        generations.push(Generation {
            producer,
            started: Instant::now(),
            ended: None,
        });
        Token(generations.len() - 1)
    }

    /// The upstream has sent everything, or its connection was closed.
    pub(super) fn generation_ended(&self, number: u64, token: Token) {
        let mut inner = self.inner();
        let generation = inner
            .generations
            .get_mut(&number)
            .and_then(|list| list.get_mut(token.0));
        if let Some(generation) = generation {
            generation.ended = Some(Instant::now());
        }
    }

    pub(super) fn killed(&self, gateway: GatewayId) {
        self.inner().killed.insert(gateway, Instant::now());
    }

    /// A gateway that was killed runs again.
    pub(super) fn started(&self, slot: usize) {
        self.inner().started.insert(slot, Instant::now());
    }

    pub(super) fn away(&self, gateway: GatewayId, away: Away) -> Token {
        let mut inner = self.inner();
        inner.away.push((gateway, away, Window::open()));
        Token(inner.away.len() - 1)
    }

    pub(super) fn back(&self, token: Token) {
        if let Some((_, _, window)) = self.inner().away.get_mut(token.0) {
            window.until = Some(Instant::now());
        }
    }

    pub(super) fn outage(&self, outage: Outage) -> Token {
        let mut inner = self.inner();
        inner.outages.push((outage, Window::open()));
        Token(inner.outages.len() - 1)
    }

    pub(super) fn outage_over(&self, token: Token) {
        if let Some((_, window)) = self.inner().outages.get_mut(token.0) {
            window.until = Some(Instant::now());
        }
    }

    pub(super) fn cancel(&self, number: u64, choices: impl IntoIterator<Item = u32>) {
        self.inner()
            .cancelled
            .entry(number)
            .or_default()
            .extend(choices);
    }

    pub(super) fn erase(&self, number: u64) {
        self.inner().erased.insert(number);
    }

    /// How often the upstream was asked for a generation.
    pub(super) fn requests(&self, number: u64) -> usize {
        self.inner().generations.get(&number).map_or(0, Vec::len)
    }

    /// Whether the log was emptied between two requests for a generation. It forgets the keys of requests, too.
    pub(super) fn has_forgotten_the_request(&self, number: u64) -> bool {
        let inner = self.inner();
        let generations = inner.generations.get(&number);
        let mut times = generations
            .into_iter()
            .flatten()
            .map(|generation| generation.started);
        let (Some(first), Some(last)) = (times.next(), times.next_back()) else {
            return false;
        };
        let mut emptied = inner
            .outages
            .iter()
            .filter(|(outage, _)| *outage == Outage::Emptied);
        emptied.any(|(_, window)| window.from <= last && window.end() >= first)
    }

    /// Whether each request for a generation but the last was made by a gateway that died before its stream was in the log.
    /// Nobody has read its answer, and another gateway takes over its key.
    pub(super) fn was_taken_over(&self, number: u64) -> bool {
        let inner = self.inner();
        let generations = inner
            .generations
            .get(&number)
            .map_or(&[][..], Vec::as_slice);
        generations.windows(2).all(|pair| {
            let [first, next] = pair else { return false };
            let written = inner.written_at_the_latest(first, first.started);
            let death = inner.death(first, self.lease);
            death.is_some_and(|death| death <= written && death < next.started)
        })
    }

    /// Whether nothing more can be produced: the upstream has ended, or the producer is dead.
    pub(super) fn is_over(&self, number: u64) -> bool {
        let inner = self.inner();
        inner.generations.get(&number).is_some_and(|list| {
            let mut list = list.iter();
            list.all(|generation| {
                generation.ended.is_some() || inner.killed.contains_key(&generation.producer)
            })
        })
    }

    /// When the producer of a stream that the log did not have completely was last alive: its death, or its return from where it
    /// could not reach the log. Until then it may have renewed its lease, even after the upstream's end.
    pub(super) fn last_sign_of_life(&self, number: u64) -> Option<Instant> {
        let inner = self.inner();
        let generations = inner.generations.get(&number).into_iter().flatten();
        let signs = generations.flat_map(|generation| {
            let sealed = inner.sealed_at_the_latest(generation);
            let killed = inner.killed.get(&generation.producer).copied();
            let windows = inner.away_windows(generation);
            let back = windows.filter_map(|(_, window)| window.until);
            let signs: Vec<_> = killed.into_iter().chain(back).collect();
            signs
                .into_iter()
                .filter(move |sign| sealed.is_none_or(|sealed| *sign <= sealed))
        });
        signs.max()
    }

    /// Whether nothing is wrong at the moment with the log, or with the gateway that a reader uses.
    pub(super) fn is_quiet(&self, slot: usize) -> bool {
        let inner = self.inner();
        inner.faults(slot).all(|window| window.until.is_some())
    }

    /// When something was wrong last with the log, or with the gateway that a reader uses. A reader that arrives at the gateway
    /// a moment after that waits no longer than one that arrived before.
    ///
    /// A gateway that was just started judges no lease until the log has answered it for half a lease: before that, it is not
    /// known whether producers were able to renew. So half of the lease's time has passed when it starts.
    pub(super) fn quiet_since(&self, slot: usize) -> Option<Instant> {
        let inner = self.inner();
        let started = inner.started.get(&slot);
        let started = started.and_then(|started| started.checked_sub(self.lease / 2));
        inner.faults(slot).map(Window::end).chain(started).max()
    }

    /// What the faults of this round excuse.
    pub(super) fn allowed(&self, number: u64) -> Allowed {
        let inner = self.inner();
        let mut allowed = Allowed {
            cancelled: inner.cancelled.get(&number).cloned().unwrap_or_default(),
            erased: inner.erased.contains(&number),
            ..Allowed::default()
        };
        for generation in inner.generations.get(&number).into_iter().flatten() {
            let death = inner.death(generation, self.lease);
            let partitioned = inner.is_partitioned(generation, self.lease);
            let outages = inner.outages_before(generation, death);
            allowed.producer_lost |= death.is_some();
            allowed.beyond_log |= partitioned || death.is_some() && outages > 0;
            allowed.log_lost |= !self.is_durable && inner.killed.contains_key(&generation.producer);
            allowed.log_lost |= inner.is_forgotten(generation, death);
        }
        allowed
    }
}

impl Inner {
    /// The faults of the log and of a gateway, but for connections that can be opened again at once.
    fn faults(&self, slot: usize) -> impl Iterator<Item = &Window> {
        let outages = self
            .outages
            .iter()
            .filter(|(outage, _)| *outage != Outage::Cuts);
        let away = self
            .away
            .iter()
            .filter(move |(gateway, ..)| gateway.slot == slot);
        let away = away.map(|(.., window)| window);
        outages.map(|(_, window)| window).chain(away)
    }

    /// When a producer stopped producing: it was killed, or was away for longer than it may be.
    fn death(&self, generation: &Generation, lease: Duration) -> Option<Instant> {
        let killed = self.killed.get(&generation.producer).copied();
        let away = self.away_windows(generation).map(|(_, window)| window);
        let away = away
            .filter(|window| is_long(window, lease))
            .map(|window| window.from);
        let sealed = self.sealed_at_the_latest(generation);
        let deaths = killed.into_iter().chain(away);
        deaths
            .filter(|death| sealed.is_none_or(|sealed| *death <= sealed))
            .min()
    }

    fn is_partitioned(&self, generation: &Generation, lease: Duration) -> bool {
        let mut windows = self.away_windows(generation);
        windows.any(|(away, window)| *away == Away::Partitioned && is_long(window, lease))
    }

    fn away_windows(&self, generation: &Generation) -> impl Iterator<Item = (&Away, &Window)> {
        let producer = generation.producer;
        let started = generation.started;
        let windows = self
            .away
            .iter()
            .filter(move |(gateway, ..)| *gateway == producer);
        let windows = windows.map(|(_, away, window)| (away, window));
        windows.filter(move |(_, window)| window.end() >= started)
    }

    /// When the log of a generation that the upstream has completed is sealed at the latest, if its producer lives.
    fn sealed_at_the_latest(&self, generation: &Generation) -> Option<Instant> {
        Some(self.written_at_the_latest(generation, generation.ended?))
    }

    /// When what a producer has at some time is written at the latest, if it lives. Outages may follow each other.
    fn written_at_the_latest(&self, generation: &Generation, time: Instant) -> Instant {
        let mut written = time + SEAL_TIME;
        let outages = self.outages.iter().map(|(_, window)| window);
        let away = self.away_windows(generation).map(|(_, window)| window);
        let mut windows: Vec<_> = outages.chain(away).collect();
        windows.sort_by_key(|window| window.from);
        for window in windows {
            if window.from <= written && window.end() + RECOVERY >= time {
                written = written.max(window.end() + RECOVERY);
            }
        }
        written
    }

    /// How many outages there were from the beginning of a generation to the death of its producer.
    fn outages_before(&self, generation: &Generation, death: Option<Instant>) -> usize {
        let windows = self.outages.iter().map(|(_, window)| window);
        let windows = windows.filter(|window| window.end() + RECOVERY >= generation.started);
        windows
            .filter(|window| death.is_none_or(|death| window.from <= death))
            .count()
    }

    /// Whether the log was emptied when nobody could repair the stream: after its end, or after the death of its producer.
    /// A stream that was never written, because the log was down and then its producer died, counts, too.
    fn is_forgotten(&self, generation: &Generation, death: Option<Instant>) -> bool {
        let windows = self
            .outages
            .iter()
            .filter(|(_, window)| window.end() >= generation.started);
        let mut emptied = windows.filter(|(outage, _)| *outage == Outage::Emptied);
        let ended = generation.ended.map(|ended| ended - SEAL_TIME);
        let is_emptied = emptied
            .any(|(_, window)| death.is_some() || ended.is_some_and(|ended| window.end() >= ended));
        let written = self.written_at_the_latest(generation, generation.started);
        let is_delayed = written > generation.started + SEAL_TIME;
        let never_written = is_delayed && death.is_some_and(|death| death <= written);
        is_emptied || never_written
    }
}

/// The last renewal of a lease may be a third of it old when a fault begins.
fn is_long(window: &Window, lease: Duration) -> bool {
    window.length() >= lease.mul_f64(0.6)
}
