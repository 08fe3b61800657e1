//! The fixed bounds of the gateway, each with its reason. Those that an operator can change are on
//! [`GatewayBuilder`](crate::GatewayBuilder).

use std::time::Duration;

/// How long the head of a request may take, from its first byte. A head is a few hundred bytes; a client that needs
/// longer holds a connection and nothing else.
pub(crate) const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// Bytes of a request's head. Proxies add headers, but no proxy adds as much.
pub(crate) const MAX_HEAD_BYTES: usize = 64 * 1024;

/// How long the body of a request may take.
pub(crate) const BODY_TIMEOUT: Duration = Duration::from_secs(60);

/// Bytes of a body after which it is checked against the memory that streams take. The check adds up all of them, and most bodies
/// are shorter.
pub(crate) const BODY_CHECK_BYTES: usize = 1024 * 1024;

/// How long the rest of a body is read and discarded whose request has been answered, so that its client sees the answer.
/// Half as long as a body may take.
pub(crate) const DISCARD_TIMEOUT: Duration = Duration::from_secs(30);

/// How long nothing of it may arrive meanwhile. Most clients that stop to send have seen the answer.
pub(crate) const DISCARD_IDLE: Duration = Duration::from_secs(5);

/// Bytes that are discarded of it, beyond those that a body may have. Few requests are larger, and their clients
/// have to look for an answer while they send.
pub(crate) const DISCARD_BYTES: usize = 32 * 1024 * 1024;

/// The least that hyper reads the bytes of a connection into.
pub(crate) const READ_BUFFER_BYTES: usize = 8 * 1024;

/// How long a connection may be idle between two requests: longer than the pools of the official SDKs keep one, so that
/// usually the client closes it.
pub(crate) const KEEP_ALIVE: Duration = Duration::from_secs(120);

/// How long a connection without a request may stay open once the gateway drains. The rest of a head that was already sent
/// arrives within it, and so does the answer to a GOAWAY.
pub(crate) const CLOSE_GRACE: Duration = Duration::from_secs(1);

/// How long after the end of its last answer an HTTP/2 connection gets a GOAWAY, so that a client does not read both at once.
pub(crate) const GOAWAY_DELAY: Duration = Duration::from_millis(250);

/// How long it waits for such a pause once the answers have ended that were begun before the drain. On a connection that many
/// clients share, through a proxy, requests may follow each other without one.
pub(crate) const GOAWAY_TIMEOUT: Duration = Duration::from_secs(1);

/// How long the last answers of an HTTP/2 connection may make no progress then: with 100 kbit/s, 64 KiB take as long.
pub(crate) const LAST_WRITES: Duration = Duration::from_secs(5);

/// How long a TLS handshake may take.
pub(crate) const TLS_TIMEOUT: Duration = Duration::from_secs(10);

/// Bytes that are written to a reader at once, and the most that is queued for it.
pub(crate) const MAX_WRITE_BYTES: usize = 64 * 1024;

/// Bytes that an HTTP/2 stream is given at once. One that takes them within the time for stalled readers reads slowly, and stays.
pub(crate) const H2_PIECE_BYTES: usize = 8 * 1024;

/// Bytes that are read from the upstream before they are appended to the log.
pub(crate) const READ_BYTES: usize = 64 * 1024;

/// Connections of one HTTP/2 client that may be open as streams.
pub(crate) const MAX_H2_STREAMS: u32 = 1024;

/// How often an HTTP/2 connection is probed. A phone that lost its network never closes its connection.
pub(crate) const H2_PING: Duration = Duration::from_secs(20);

/// How long connecting to the upstream may take. Across an ocean, with a TLS handshake, it takes one second.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a connection to the upstream is kept for the next request. uvicorn, Node.js and llama.cpp close theirs after 5 s
/// without notice, and a request that meets the close would fail.
pub(crate) const UPSTREAM_KEEP_ALIVE: Duration = Duration::from_secs(4);

/// The silence that ends a choice whose finish reason has arrived, equal to that of the library.
pub(crate) const IDLE_END: Duration = Duration::from_millis(250);

/// How long a cancel waits for the producer to confirm it.
pub(crate) const CANCEL_TIMEOUT: Duration = Duration::from_secs(1);

/// How often a gateway reports to another one that it has readers of a stream that is orphaned without any: every third of that
/// time, within these bounds. A report costs the log as much as a cancel.
pub(crate) const MIN_READ_REPORT: Duration = Duration::from_millis(300);
pub(crate) const MAX_READ_REPORT: Duration = Duration::from_secs(60);

/// The longest lifetime of a signed link.
pub(crate) const MAX_LINK_SECONDS: u64 = 7 * 24 * 3600;

/// The lifetime of a signed link that asks for none.
pub(crate) const LINK_SECONDS: u64 = 3600;

/// Bytes of the secret that signs links. The holder of a link can try secrets on it, so a short one protects nothing.
pub(crate) const MIN_LINK_SECRET: usize = 16;

/// Bytes of an `Idempotency-Key`.
pub(crate) const MAX_IDEMPOTENCY_KEY: usize = 255;

/// Bytes of the body of `POST ../links`.
pub(crate) const MAX_LINK_BODY: usize = 4 * 1024;

/// Bytes of an upstream refusal that are kept for the status of a `respond-async` stream and for those who wait with the
/// same idempotency key. A gateway's HTML page has about 10 KiB.
pub(crate) const MAX_REFUSAL_BYTES: usize = 64 * 1024;

/// White space before an answer of which it is not known yet if it is an event stream. Servers that send blank lines while they
/// work send a few hundred bytes.
pub(crate) const MAX_BLANK_BYTES: usize = 64 * 1024;

/// Bytes of an upstream's whole JSON answer that are held, where a stream was requested.
pub(crate) const MAX_JSON_ANSWER: usize = 64 * 1024 * 1024;

/// Requests of one fan-out that run at once: providers limit it, and few allow many more.
pub(crate) const MAX_FAN_OUT_REQUESTS: usize = 16;

/// Prompts of one request for text completions, and the least number of choices of one answer that is always allowed:
/// OpenAI's own limit on prompts. Each choice costs memory here, and with fan-out a request.
pub(crate) const MAX_PROMPTS: usize = 2048;

/// Bytes of a model's name that are kept. The longest names in use are paths of files, of about a hundred bytes.
pub(crate) const MAX_MODEL_NAME: usize = 256;

/// Models that are remembered as giving one choice only. One that is not remembered costs a request more, and no harm.
pub(crate) const MAX_KNOWN_MODELS: usize = 256;

/// Bytes of an auth file: hundreds of thousands of keys.
pub(crate) const MAX_AUTH_FILE: u64 = 16 * 1024 * 1024;

/// How long a request waits for a log in another process, before it gets 503.
pub(crate) const LOG_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a request waits for a stream that a log which was away may not have yet. Producers need less to write it again.
pub(crate) const LACK_TIMEOUT: Duration = Duration::from_secs(8);

/// How long a log may take to show that it is available.
pub(crate) const CHECK_TIMEOUT: Duration = Duration::from_millis(1500);

/// A century, which can be added to the time.
pub(crate) const FAR: Duration = Duration::from_secs(3600 * 24 * 36500);
