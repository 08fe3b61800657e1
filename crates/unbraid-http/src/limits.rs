//! Every bound of this crate, each with its reason.

use std::time::Duration;

/// Bytes that are read of an error's body. A gateway's HTML page has some 10 KiB, a provider's JSON less.
pub const MAX_ERROR_BODY_BYTES: usize = 64 * 1024;

/// How long an error's body is waited for: the status alone tells most, and its owner waits for it. As long as that, too, for
/// the first letter of what may be a web page.
pub const MAX_ERROR_BODY_TIME: Duration = Duration::from_secs(5);

/// Further attempts unless told otherwise, as the official SDKs make.
pub const RETRIES: u32 = 2;

/// The longest `Retry-After` that is waited for. Providers name seconds for a busy minute, and hours for a used-up quota:
/// who has to wait for hours wants to know it now.
pub const MAX_RETRY_AFTER: Duration = Duration::from_secs(60);

/// The pause before the second attempt, doubled before each further one, with as much again of jitter at most.
pub const FIRST_PAUSE: Duration = Duration::from_millis(250);

/// The longest pause of our own: a server that is down for longer is not back because of one more attempt.
pub const MAX_PAUSE: Duration = Duration::from_secs(8);

/// Requests of one fan-out that run at once, unless told otherwise: providers count them, and few allow much more.
pub const MAX_REQUESTS: usize = 16;

/// Requests of one fan-out at most, which is one for each choice. Each is billed for the whole prompt, so that a larger number is a
/// mistake more often than not.
pub const MAX_FAN_OUT: u32 = 1024;

/// Models of which a client remembers that they give one choice only. Who uses more of them through one client has a gateway.
pub const MAX_KNOWN_MODELS: usize = 256;

/// How long a connection may take. An ocean and a TLS handshake need one second.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long the first byte of an answer may take, unless a timeout says otherwise. Models that reason for minutes send their
/// head or keep-alives before; a server that has stopped sends nothing for good.
pub const FIRST_BYTE_TIMEOUT: Duration = Duration::from_secs(600);
