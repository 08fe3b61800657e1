//! The error of a request that returned no stream.

use std::{error::Error as StdError, sync::Arc};

use unbraid::TimedOut;

use super::build::BuildError;
use crate::{host::host_and_port, request::RequestError, status::StatusError};

/// A cause that another crate reported.
type Source = Arc<dyn StdError + Send + Sync>;

/// Why a request returned no stream.
///
/// Errors that occur later, within the stream, are returned by the handles of [`Completions`](unbraid::Completions).
///
/// # Examples
///
/// ```
/// use unbraid_http::{Client, HttpError, Request};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), unbraid_http::Error> {
/// let client = Client::builder().base_url("http://127.0.0.1:1/v1").proxy_from_env(false).retries(0).build()?;
/// match client.send(&Request::chat("a model").user("Hello?")).await {
///     Err(HttpError::Connect { host, .. }) => assert_eq!(host, "127.0.0.1:1"),
///     Err(error) => return Err(error.into()),
///     Ok(completions) => println!("{}", completions.first().await?.text().await?),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum HttpError {
    /// The client cannot be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The value is not a request, or the provider has nothing that means the same as one of its fields. Nothing was sent.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// No async runtime runs on this thread, so nothing can be sent.
    #[error("no tokio runtime runs on this thread")]
    NoRuntime,
    /// The runtime has no time driver: it was built without `enable_time`.
    #[error("the runtime has no time driver, which connections need")]
    NoTimeDriver,
    /// No connection was established: the name is unknown, the port is closed, or the connect timeout passed.
    #[error("no connection to {host}")]
    Connect {
        /// Host and port.
        host: String,
        /// The network's error.
        #[source]
        source: Source,
    },
    /// The server was reached, but it does not support TLS, or its certificate is not trusted.
    #[error("no TLS with {host}")]
    Tls {
        /// Host and port.
        host: String,
        /// The handshake's error.
        #[source]
        source: Source,
    },
    /// A timeout passed before the response began.
    #[error(transparent)]
    TimedOut(TimedOut),
    /// The connection was lost, or violated the protocol, before the response began. The server may have seen the
    /// request, so it is not sent again.
    #[error("the connection to {host} failed before a response arrived")]
    Transport {
        /// Host and port.
        host: String,
        /// The connection's error.
        #[source]
        source: Source,
    },
    /// The server responded with a status other than success.
    #[error(transparent)]
    Status(StatusError),
    /// The status is a success, but the body is a web page: the address belongs to a front end, or requires a login.
    #[error("the response is a web page, not a stream of completions: {0}")]
    UnexpectedHtml(StatusError),
    /// A fan-out would need one request for each choice, and that number exceeds the limit. Nothing was sent.
    #[error("a fan-out of {requested} requests exceeds the limit of {max}")]
    TooManyChoices {
        /// How many requests it would need: one for each choice of each prompt.
        requested: u64,
        /// The limit, [`MAX_FAN_OUT`](crate::limits::MAX_FAN_OUT).
        max: u32,
    },
}

impl HttpError {
    /// Returns one lower-case word for the kind of error, as the command line prints it.
    ///
    /// # Examples
    ///
    /// ```
    /// assert_eq!(unbraid_http::HttpError::NoRuntime.as_str(), "no_runtime");
    /// ```
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Build(_) => "build",
            Self::Request(_) => "request",
            Self::NoRuntime => "no_runtime",
            Self::NoTimeDriver => "no_time_driver",
            Self::Connect { .. } => "connect",
            Self::Tls { .. } => "tls",
            Self::TimedOut(_) => "timed_out",
            Self::Transport { .. } => "transport",
            Self::Status(_) => "status",
            Self::UnexpectedHtml(_) => "page",
            Self::TooManyChoices { .. } => "too_many_choices",
        }
    }

    /// Finds the error of a request among the causes of another error, such as that of one choice of a
    /// [`fan_out`](crate::Client::fan_out).
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_http::{Client, HttpError, Request};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), unbraid_http::Error> {
    /// let builder = Client::builder().base_url("http://127.0.0.1:1/v1").proxy_from_env(false);
    /// let completions = builder.retries(0).build()?.fan_out(&Request::chat("a model").user("Hello?"), 2);
    /// let error = completions.first().await?.text().await.unwrap_err();
    /// assert!(matches!(HttpError::find_in(&error), Some(HttpError::Connect { .. })));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn find_in<'e>(error: &'e (dyn StdError + 'static)) -> Option<&'e Self> {
        match error.downcast_ref::<Self>() {
            Some(found) => Some(found),
            None => Self::find_in(error.source()?),
        }
    }

    /// Returns the server's response, if it sent one.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_http::HttpError;
    ///
    /// assert!(HttpError::NoRuntime.status_error().is_none());
    /// ```
    #[must_use]
    pub fn status_error(&self) -> Option<&StatusError> {
        match self {
            Self::Status(status) | Self::UnexpectedHtml(status) => Some(status),
            Self::Build(_)
            | Self::Request(_)
            | Self::NoRuntime
            | Self::NoTimeDriver
            | Self::Connect { .. }
            | Self::Tls { .. }
            | Self::TimedOut(_)
            | Self::TooManyChoices { .. }
            | Self::Transport { .. } => None,
        }
    }

    /// Classifies the error of a request that got no response.
    pub(crate) fn from_reqwest(error: reqwest::Error) -> Self {
        let host = error.url().map(host_and_port).unwrap_or_default();
        let connect = error.is_connect();
        // The URL may contain a key, and errors are printed.
        let source: Source = Arc::new(error.without_url());
        if connect && is_tls_error(&*source) {
            Self::Tls { host, source }
        } else if connect {
            Self::Connect { host, source }
        } else {
            Self::Transport { host, source }
        }
    }
}

/// Whether the TLS library's error is anywhere among the causes. An `io::Error` does not return the error that it wraps as
/// its source, so that one is checked, too.
fn is_tls_error(error: &(dyn StdError + 'static)) -> bool {
    let wrapped = error
        .downcast_ref::<std::io::Error>()
        .and_then(std::io::Error::get_ref);
    is_of_tls_library(error)
        || wrapped.is_some_and(|inner| is_tls_error(inner))
        || error.source().is_some_and(is_tls_error)
}

#[cfg_attr(
    not(any(feature = "rustls-ring", feature = "native-tls")),
    expect(unused_variables, reason = "without TLS no error is one of TLS")
)]
fn is_of_tls_library(error: &(dyn StdError + 'static)) -> bool {
    #[cfg(feature = "rustls-ring")]
    if error.is::<rustls::Error>() {
        return true;
    }
    #[cfg(feature = "native-tls")]
    if error.is::<native_tls::Error>() {
        return true;
    }
    false
}
