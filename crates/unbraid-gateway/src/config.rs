//! The options of a gateway.

mod builder;

use std::{path::PathBuf, sync::Arc, time::Duration};

use axum::http::{HeaderName, HeaderValue};
use reqwest::Url;
use unbraid_log::LogStore;

use crate::{error::BuildError, limits::FAR};

pub use builder::GatewayBuilder;

/// How `n` choices are requested from the upstream.
///
/// # Examples
///
/// ```
/// use unbraid_gateway::FanOut;
///
/// assert_eq!("always".parse(), Ok(FanOut::Always));
/// assert_eq!(FanOut::default(), FanOut::Auto);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum FanOut {
    /// The request is sent unchanged.
    Native,
    /// The request is sent with `n`. If the provider refuses or ignores it, one request is sent for each missing choice,
    /// and the model is remembered.
    #[default]
    Auto,
    /// One request is sent for each choice. The prompt is billed `n` times.
    Always,
}

impl std::str::FromStr for FanOut {
    type Err = UnknownOption;

    fn from_str(text: &str) -> Result<Self, UnknownOption> {
        match text {
            "native" => Ok(Self::Native),
            "auto" => Ok(Self::Auto),
            "always" => Ok(Self::Always),
            _ => Err(UnknownOption),
        }
    }
}

/// What happens to an answer if the log that keeps it fails.
///
/// # Examples
///
/// ```
/// use unbraid_gateway::OnLogFailure;
///
/// assert_eq!("fail".parse(), Ok(OnLogFailure::Fail));
/// assert_eq!(OnLogFailure::default(), OnLogFailure::Degrade);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnLogFailure {
    /// It continues from memory.
    #[default]
    Degrade,
    /// It ends as `server_error`, and new requests get 503.
    Fail,
}

impl std::str::FromStr for OnLogFailure {
    type Err = UnknownOption;

    fn from_str(text: &str) -> Result<Self, UnknownOption> {
        match text {
            "degrade" => Ok(Self::Degrade),
            "fail" => Ok(Self::Fail),
            _ => Err(UnknownOption),
        }
    }
}

impl From<OnLogFailure> for unbraid_log::OnFailure {
    fn from(policy: OnLogFailure) -> Self {
        match policy {
            OnLogFailure::Degrade => Self::Degrade,
            OnLogFailure::Fail => Self::Fail,
        }
    }
}

/// A word that names no value of an option.
///
/// # Examples
///
/// ```
/// use unbraid_gateway::{FanOut, UnknownOption};
///
/// assert_eq!("sometimes".parse::<FanOut>(), Err(UnknownOption));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("unknown value")]
pub struct UnknownOption;

/// The options, checked.
#[derive(Clone)]
pub(crate) struct Config {
    pub(crate) upstream: Url,
    pub(crate) upstream_key: Option<(HeaderName, HeaderValue)>,
    pub(crate) upstream_roots: Vec<Vec<u8>>,
    pub(crate) options: Options,
}

/// The options that need no check.
#[derive(Clone)]
pub(crate) struct Options {
    pub(crate) fan_out: FanOut,
    pub(crate) log: Option<Arc<dyn LogStore>>,
    pub(crate) on_log_failure: OnLogFailure,
    pub(crate) linger: Duration,
    pub(crate) ttl: Duration,
    pub(crate) lease: Duration,
    pub(crate) orphan_after: Option<Duration>,
    pub(crate) auth_file: Option<PathBuf>,
    pub(crate) link_secret: Option<Vec<u8>>,
    pub(crate) any_address: bool,
    pub(crate) max_n: u32,
    pub(crate) max_body: usize,
    pub(crate) max_stream_bytes: u64,
    pub(crate) max_memory: u64,
    pub(crate) max_streams: usize,
    pub(crate) max_streams_per_principal: usize,
    pub(crate) max_readers: usize,
    pub(crate) reader_stall: Duration,
    pub(crate) first_byte_timeout: Duration,
    pub(crate) idle_timeout: Duration,
    pub(crate) retries: u32,
    pub(crate) proxy_from_env: bool,
    pub(crate) ping: Duration,
    pub(crate) max_connection_age: Option<Duration>,
    pub(crate) drain: Duration,
    pub(crate) pass_through: bool,
    pub(crate) serves_metrics: bool,
    pub(crate) public_path: String,
}

impl Options {
    /// Refuses the options that are zero, except where that means something: a limit on streams of zero keeps none, for
    /// example, and the provider is not asked for any.
    fn check_zeros(&self) -> Result<(), BuildError> {
        let options = [
            ("lease", self.lease.is_zero()),
            ("max_n", self.max_n == 0),
            ("max_body", self.max_body == 0),
            ("max_stream_bytes", self.max_stream_bytes == 0),
            ("max_readers", self.max_readers == 0),
            ("reader_stall", self.reader_stall.is_zero()),
            ("first_byte_timeout", self.first_byte_timeout.is_zero()),
            ("idle_timeout", self.idle_timeout.is_zero()),
        ];
        match options.into_iter().find(|(_, is_zero)| *is_zero) {
            Some((option, _)) => Err(BuildError::Zero { option }),
            None => Ok(()),
        }
    }

    /// Bounds the durations, so that each can be added to the time: a century is forever.
    fn with_bounded_durations(mut self) -> Self {
        let durations = [
            &mut self.linger,
            &mut self.ttl,
            &mut self.lease,
            &mut self.reader_stall,
            &mut self.first_byte_timeout,
            &mut self.idle_timeout,
            &mut self.ping,
            &mut self.drain,
        ];
        let optional = [&mut self.orphan_after, &mut self.max_connection_age];
        for duration in durations.into_iter().chain(optional.into_iter().flatten()) {
            *duration = (*duration).min(FAR);
        }
        self
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            fan_out: FanOut::default(),
            log: None,
            on_log_failure: OnLogFailure::default(),
            linger: Duration::ZERO,
            ttl: Duration::from_secs(3600),
            lease: Duration::from_secs(15),
            orphan_after: None,
            auth_file: None,
            link_secret: None,
            any_address: false,
            max_n: 128,
            max_body: 32 << 20,
            max_stream_bytes: 64 << 20,
            max_memory: 1 << 30,
            max_streams: 2000,
            max_streams_per_principal: 256,
            max_readers: 64,
            reader_stall: Duration::from_secs(30),
            first_byte_timeout: Duration::from_secs(600),
            idle_timeout: Duration::from_secs(300),
            retries: 0,
            proxy_from_env: true,
            ping: Duration::from_secs(15),
            max_connection_age: Some(Duration::from_secs(300)),
            drain: Duration::from_secs(30),
            pass_through: false,
            serves_metrics: true,
            public_path: String::new(),
        }
    }
}
