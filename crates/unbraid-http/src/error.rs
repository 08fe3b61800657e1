//! Why no stream of completions came. Neither the key nor any payload is in the text of an error.

use std::{error::Error as StdError, sync::Arc};

use unbraid::TimedOut;

use crate::{request::RequestError, status::StatusError};

/// A cause that another crate reported.
type Source = Arc<dyn StdError + Send + Sync>;

/// Why a request brought no stream.
///
/// What happens later, in the stream itself, is told by the handles of [`Completions`](unbraid::Completions).
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum HttpError {
    /// The client cannot be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The value is no request.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// No async runtime runs on this thread, so nothing can be sent.
    #[error("no tokio runtime runs on this thread")]
    NoRuntime,
    /// The runtime has no time driver: it was built without `enable_time`.
    #[error("the runtime has no time driver, which connections need")]
    NoTimeDriver,
    /// No connection came about: the name is unknown, the port is closed, it took too long.
    #[error("no connection to {host}")]
    Connect {
        /// Host and port.
        host: String,
        /// What the network says.
        #[source]
        source: Source,
    },
    /// The server was reached, but it speaks no TLS, or shows no certificate that is trusted.
    #[error("no TLS with {host}")]
    Tls {
        /// Host and port.
        host: String,
        /// What the handshake says.
        #[source]
        source: Source,
    },
    /// A timeout passed before the answer began.
    #[error(transparent)]
    TimedOut(TimedOut),
    /// The connection was lost, or broke the protocol, before the answer began. The server may have seen the request, so
    /// it is not sent again.
    #[error("the connection to {host} failed before an answer came")]
    Transport {
        /// Host and port.
        host: String,
        /// What the connection says.
        #[source]
        source: Source,
    },
    /// The server answered with a status other than success.
    #[error(transparent)]
    Status(StatusError),
    /// The status is a success, but the body is a web page: the address is that of a front end, or a login stands before it.
    #[error("a web page came, and no stream of completions: {0}")]
    UnexpectedHtml(StatusError),
    /// A fan-out would take a request for each choice, and these would be too many. Nothing was sent.
    #[error("a fan-out of {requested} requests exceeds the limit of {max}")]
    TooManyChoices {
        /// How many requests it would take: one for each choice of each prompt.
        requested: u64,
        /// The limit, [`MAX_FAN_OUT`](crate::limits::MAX_FAN_OUT).
        max: u32,
    },
}

/// Why a client cannot be built.
///
/// # Examples
///
/// ```
/// use unbraid_http::Client;
///
/// let refused = Client::builder().base_url("localhost:8000/v1").build().unwrap_err();
/// assert_eq!(refused.to_string(), "the base URL cannot be used: it does not begin with http:// or https://");
/// ```
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The base URL. It is not repeated here: people put keys into it.
    #[error("the base URL cannot be used: {why}")]
    Url {
        /// What is wrong with it.
        why: String,
    },
    /// The key holds what no header can: a line end within, or letters beyond ASCII.
    #[error("the key holds characters that a header cannot carry")]
    Key,
    /// The name or the value of a further header.
    #[error("header {name:?} cannot be sent")]
    Header {
        /// Its name as it was given.
        name: String,
    },
    /// The TLS library, or a root certificate.
    #[error("TLS cannot be set up")]
    Tls(#[source] Source),
}

impl HttpError {
    /// One lower-case word for the kind of error, as the command line prints it.
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

    /// The error of a request that stands behind another error: that of a choice of a [`fan_out`](crate::Client::fan_out), say.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_http::{Client, HttpError, Request};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let nowhere = Client::builder().base_url("http://127.0.0.1:1/v1").proxy_from_env(false);
    /// let completions = nowhere.retries(0).build()?.fan_out(&Request::chat("a model").user("Hello?"), 2);
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

    /// What the server said of itself, if it answered at all.
    #[must_use]
    pub fn status_error(&self) -> Option<&StatusError> {
        match self {
            Self::Status(answer) | Self::UnexpectedHtml(answer) => Some(answer),
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

    /// Sorts an error of a request that got no answer.
    pub(crate) fn unanswered(error: reqwest::Error) -> Self {
        let host = error.url().map(host).unwrap_or_default();
        let connect = error.is_connect();
        let source: Source = Arc::new(error.without_url());
        if connect && is_of_tls(&*source) {
            Self::Tls { host, source }
        } else if connect {
            Self::Connect { host, source }
        } else {
            Self::Transport { host, source }
        }
    }
}

/// Host and port of an address: neither user, nor path, nor query.
pub(crate) fn host(url: &reqwest::Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port_or_known_default() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

/// Whether rustls stands anywhere in the chain of causes; an `io::Error` hides what it wraps from that chain.
fn is_of_tls(error: &(dyn StdError + 'static)) -> bool {
    let wrapped = error
        .downcast_ref::<std::io::Error>()
        .and_then(std::io::Error::get_ref);
    error.is::<rustls::Error>()
        || wrapped.is_some_and(|inner| is_of_tls(inner))
        || error.source().is_some_and(is_of_tls)
}
