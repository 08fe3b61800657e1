//! What goes wrong with a generation. The seed alone decides, so a finding can be repeated.

use crate::random::Random;

/// What the provider does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Upstream {
    Complete,
    /// The body ends cleanly, but without `[DONE]`.
    NoDone,
    /// The connection is closed in the middle of an event.
    Cut,
    /// It sends nothing more.
    Stalls,
    /// It accepts the request and sends nothing.
    Silent,
    /// It closes the connection without a byte.
    Hangup,
    Refuses,
    /// The body of its refusal does not end.
    RefusesHalf,
    /// The body is not an event stream.
    Garbage,
    /// What it sends is not HTTP.
    NotHttp,
    /// An error event.
    Error,
    /// More than the limit of a stream.
    TooLong,
    /// One JSON object in place of a stream.
    Whole,
}

const UPSTREAMS: [Upstream; 16] = [
    Upstream::Complete,
    Upstream::Complete,
    Upstream::Complete,
    Upstream::Complete,
    Upstream::NoDone,
    Upstream::Cut,
    Upstream::Stalls,
    Upstream::Silent,
    Upstream::Hangup,
    Upstream::Refuses,
    Upstream::RefusesHalf,
    Upstream::Garbage,
    Upstream::NotHttp,
    Upstream::Error,
    Upstream::TooLong,
    Upstream::Whole,
];

impl Upstream {
    /// Whether an answer may end with `[DONE]` although nobody has cancelled it.
    pub(super) fn may_be_done(self) -> bool {
        matches!(self, Self::Complete | Self::Whole)
    }
}

/// What the client does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Client {
    Reads,
    /// Takes its time between two reads.
    Slow,
    /// Does not read at all, for longer than the gateway waits.
    Stops,
    /// Loses its connection, and resumes, again and again.
    Resumes,
    /// Leaves, and reads each choice later.
    Leaves,
    CancelsOne,
    CancelsAll,
    Erases,
    /// Sends the same request several times at once, with one key.
    Repeats,
    /// Wants the id first.
    Async,
    Live,
    /// Wants one JSON object.
    Json,
    /// The same, and leaves at once.
    JsonLeaves,
}

const CLIENTS: [Client; 14] = [
    Client::Reads,
    Client::Slow,
    Client::Stops,
    Client::Resumes,
    Client::Resumes,
    Client::Leaves,
    Client::CancelsOne,
    Client::CancelsAll,
    Client::Erases,
    Client::Repeats,
    Client::Async,
    Client::Live,
    Client::Json,
    Client::JsonLeaves,
];

#[derive(Debug, Clone, Copy)]
pub(super) struct Plan {
    pub(super) upstream: Upstream,
    pub(super) client: Client,
    pub(super) choices: usize,
    pub(super) events: usize,
}

impl Plan {
    pub(super) fn of(seed: u64) -> Self {
        let mut random = Random::new(seed);
        // The first numbers of similar seeds are similar.
        let _warm_up = [random.below(2), random.below(2), random.below(2)];
        let pick = random.below(UPSTREAMS.len());
        let upstream = UPSTREAMS.get(pick).copied().unwrap_or(Upstream::Complete);
        let pick = random.below(CLIENTS.len());
        let client = CLIENTS.get(pick).copied().unwrap_or(Client::Reads);
        Self {
            upstream,
            client,
            choices: 1 + random.below(4),
            events: random.below(40),
        }
    }
}
