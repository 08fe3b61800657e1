//! Every bound of this crate, each with its reason.
//!
//! # Examples
//!
//! ```
//! use unbraid_http::limits;
//!
//! assert!(limits::FIRST_PAUSE < limits::MAX_PAUSE);
//! assert!(limits::MAX_REQUESTS < limits::MAX_FAN_OUT as usize);
//! ```

use std::time::Duration;

/// Bytes that are read of an error's body. A gateway's HTML page has about 10 KiB, a provider's JSON less.
///
/// # Examples
///
/// ```
/// assert_eq!(unbraid_http::limits::MAX_ERROR_BODY_BYTES, 64 * 1024);
/// ```
pub const MAX_ERROR_BODY_BYTES: usize = 64 * 1024;

/// How long the body of an error may take: the status alone says most, and the caller is waiting for it. The first
/// character of a body that is declared as a web page may take as long.
///
/// # Examples
///
/// ```
/// assert_eq!(unbraid_http::limits::MAX_ERROR_BODY_TIME.as_secs(), 5);
/// ```
pub const MAX_ERROR_BODY_TIME: Duration = Duration::from_secs(5);

/// The default number of further attempts, equal to that of the official SDKs.
///
/// # Examples
///
/// ```
/// assert_eq!(unbraid_http::limits::RETRIES, 2);
/// ```
pub const RETRIES: u32 = 2;

/// The `max_tokens` of a request to Anthropic that has none. The API requires the field; this is the largest number that every
/// model accepts, and a longer answer ends with the reason `max_tokens`.
///
/// # Examples
///
/// ```
/// assert_eq!(unbraid_http::limits::ANTHROPIC_MAX_TOKENS, 4096);
/// ```
pub const ANTHROPIC_MAX_TOKENS: u32 = 4096;

/// The longest `Retry-After` that the client waits for. Providers ask for seconds in a busy minute, and for hours when a
/// quota is used up; an error at once is more useful than a wait of hours.
///
/// # Examples
///
/// ```
/// assert_eq!(unbraid_http::limits::MAX_RETRY_AFTER.as_secs(), 60);
/// ```
pub const MAX_RETRY_AFTER: Duration = Duration::from_secs(60);

/// The pause before the second attempt. It doubles before each further one, and up to as much again is added as jitter.
///
/// # Examples
///
/// ```
/// assert_eq!(unbraid_http::limits::FIRST_PAUSE.as_millis(), 250);
/// ```
pub const FIRST_PAUSE: Duration = Duration::from_millis(250);

/// The longest pause that the client itself chooses: a server that is down for longer does not return because of one more
/// attempt.
///
/// # Examples
///
/// ```
/// assert_eq!(unbraid_http::limits::MAX_PAUSE.as_secs(), 8);
/// ```
pub const MAX_PAUSE: Duration = Duration::from_secs(8);

/// The default number of requests of one fan-out that run at once: providers limit it, and few allow many more.
///
/// # Examples
///
/// ```
/// assert_eq!(unbraid_http::limits::MAX_REQUESTS, 16);
/// ```
pub const MAX_REQUESTS: usize = 16;

/// The largest number of requests of one fan-out, which is the number of its choices. The whole prompt is billed for each, so
/// a larger number is most likely a mistake.
///
/// # Examples
///
/// ```
/// assert_eq!(unbraid_http::limits::MAX_FAN_OUT, 1024);
/// ```
pub const MAX_FAN_OUT: u32 = 1024;

/// How many models a client remembers as giving one choice only. A program that uses more models through one client uses a
/// gateway.
///
/// # Examples
///
/// ```
/// assert_eq!(unbraid_http::limits::MAX_KNOWN_MODELS, 256);
/// ```
pub const MAX_KNOWN_MODELS: usize = 256;

/// How long establishing a connection may take. Across an ocean, with a TLS handshake, it takes one second.
///
/// # Examples
///
/// ```
/// assert_eq!(unbraid_http::limits::CONNECT_TIMEOUT.as_secs(), 10);
/// ```
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long the first byte of a response may take, unless a timeout is set. Models that reason for minutes send the head or
/// keep-alives earlier; a server that has stopped never sends anything.
///
/// # Examples
///
/// ```
/// assert_eq!(unbraid_http::limits::FIRST_BYTE_TIMEOUT.as_secs(), 600);
/// ```
pub const FIRST_BYTE_TIMEOUT: Duration = Duration::from_secs(600);
