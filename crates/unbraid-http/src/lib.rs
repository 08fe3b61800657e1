//! Requests over HTTP for [`unbraid`]: from a question to one independent stream per answer.
//!
//! # Five minutes
//!
//! A [`Client`] sends a [`Request`] to any endpoint in the OpenAI format, or to [another provider](Client::builder_for),
//! and returns [`Completions`](unbraid::Completions) as soon as the answer begins.
//!
//! ```no_run
//! use tokio::task::JoinSet;
//! use unbraid_http::{Client, HttpError, Request};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::from_env()?; // OPENAI_BASE_URL, OPENAI_API_KEY
//! let request = Request::chat("gpt-4o-mini").user("Write a haiku on rain.").n(3);
//! let completions = match client.send(&request).await {
//!     Err(HttpError::Status(refused)) => {
//!         eprintln!("{refused}: {}", refused.message().unwrap_or("no message"));
//!         return Ok(());
//!     }
//!     sent => sent?,
//! };
//! let mut choices = completions.choices();
//! let mut tasks = JoinSet::new();
//! while let Some(choice) = choices.next().await {
//!     let choice = choice?;
//!     tasks.spawn(async move { choice.finished().await });
//! }
//! while let Some(outcome) = tasks.join_next().await {
//!     let outcome = outcome??;
//!     println!("{}: {}", outcome.choice, outcome.message.content);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Concepts
//!
//! - A [`Client`] is an address, a key and a connection pool. Create one with [`Client::builder`] and clone it.
//! - A [`Request`] has methods for the usual fields, passes any other field through ([`Request::field`]), and accepts the
//!   request types of other crates ([`Request::from_serialize`]).
//! - [`Client::anthropic`], [`gemini`](Client::gemini), [`ollama`](Client::ollama), [`cohere`](Client::cohere) and
//!   [`responses`](Client::responses) create clients for other [providers](Provider). They translate a request
//!   ([`Request::body_for`]), or send the provider's own JSON ([`Request::native`]). What cannot be translated is an error before
//!   anything is sent.
//! - [`ChoiceStrategy`] decides how `n` choices are requested: by the provider's `n`, by one request per choice, or by
//!   whichever works. [`Client::fan_out`] always sends one request per choice.
//! - [`Client::open`] returns the [`Body`] instead, as bytes to be recorded or forwarded.
//! - [`ResponseExt`] reads a response of your own reqwest client; nothing else of this crate is needed then.
//!
//! # Errors and retries
//!
//! - An error status is a [`StatusError`], never a stream. [`HttpError`] covers everything before the answer; after it has
//!   begun, the errors are those of [`unbraid`]. [`Error`] holds all of them, so that a program can use `?` throughout.
//! - A request is sent again only if no answer can have begun: on the statuses 408, 409, 429 and 5xx, if no connection was
//!   established, or if an HTTP/2 server guarantees that it did not process the request. An answer that has begun is never
//!   requested again, because it would be billed twice.
//!
//! # Cancel
//!
//! Dropping the last handle of a completion closes its connection, which makes the server stop. After the end of an answer
//! the connection is reused. With a fan-out, cancelling one choice closes the connection of that choice.
//!
//! # Limits and secrets
//!
//! Timeouts for connecting, the first byte, silence and the whole request are set on [`ClientBuilder`]; [`limits`] has the
//! constants. The key and the values of other headers appear in no error (neither of an error status nor inside a
//! stream), no log and no `Debug` output. Redirects are not followed,
//! so the key is sent nowhere else.
//!
//! # Features
//!
//! All features only add something; each works without the others.
//!
//! | feature | default | what it adds |
//! |---|---|---|
//! | `rustls-ring` | yes | TLS by rustls with ring. The client brings its own provider: none has to be installed. Needs no OpenSSL and no cmake |
//! | `native-tls` | no | TLS by the operating system's library. It is used if `rustls-ring` is off, or by `ClientBuilder::native_tls` |
//! | `http2` | yes | HTTP/2, negotiated by TLS or by `ClientBuilder::http2_prior_knowledge` |
//! | `gzip`, `brotli`, `zstd` | yes | responses in that encoding; without any of them, uncompressed responses are requested |
//!
//! Without `rustls-ring` and `native-tls` only `http://` addresses can be used; `https://` is a [`BuildError`].
//!
//! # Guides
//!
//! [Requests](https://github.com/unbraid/unbraid/blob/main/docs/requests.md) describes every setting and response;
//! the [cookbook](https://github.com/unbraid/unbraid/blob/main/docs/cookbook.md) has fourteen jobs of 20 to 45 lines.
#![cfg_attr(docsrs, feature(doc_cfg))]

// The programs of these pages are doc tests here, because this crate depends on all libraries.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/requests.md")]
struct Requests;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/cookbook.md")]
struct Cookbook;

mod body;
mod client;
mod endpoint;
mod error;
mod fan_out;
mod host;
pub mod limits;
mod provider;
mod refused_n;
mod request;
mod response;
mod secrets;
mod send;
mod status;
mod tls;

pub use body::Body;
pub use client::{Client, ClientBuilder};
pub use error::{BuildError, Error, HttpError};
pub use provider::{Provider, UnknownProvider};
pub use request::{ChoiceStrategy, ReplyPolicy, ReplyReasoning, Request, RequestError};
pub use response::ResponseExt;
pub use status::StatusError;

/// The machinery that the gateway and the command share. **It is not part of the public API.**
///
/// Items in this module change in any release, without notice and without a new major version. `unbraid-gateway` and
/// `unbraid-cli` therefore depend on exactly one version of this crate (`=x.y.z`).
#[doc(hidden)]
pub mod internal {
    use std::time::Duration;

    use bytes::Bytes;
    use futures::stream::BoxStream;
    use reqwest::header::HeaderMap;
    use unbraid::BoxError;

    use crate::{
        body::encoding, client::ClientBuilder, error::BuildError, error::HttpError, send, status,
        tls::Backend,
    };
    pub use crate::{refused_n::RefusedN, request::encode::seed_of, tls::SharedTls};

    /// Returns the HTTP client alone, for a caller that forwards requests as they are: the command's `replay --record-from`.
    pub fn http_client(builder: &ClientBuilder) -> Result<reqwest::Client, BuildError> {
        builder.http_client()
    }

    /// Returns the TLS library of clients that trust the system's certificates and the given roots.
    pub fn shared_tls(roots: &[Vec<u8>]) -> Result<SharedTls, BuildError> {
        Backend::default().shared(roots)
    }

    /// Whether a server asks by its headers not to send a request again, and how long it asks to wait.
    pub fn retry_headers(headers: &HeaderMap) -> (bool, Option<Duration>) {
        (status::forbids_retry(headers), status::retry_after(headers))
    }

    /// Whether a request that got no response may be sent again: only if no answer to it can have begun.
    pub fn permits_retry(error: reqwest::Error) -> bool {
        send::is_retryable(&HttpError::from_reqwest(error))
    }

    /// Whether a body with these headers has a registered encoding. Any other name in `content-encoding` says nothing.
    pub fn is_encoded(headers: &HeaderMap) -> bool {
        encoding::is_encoded(headers)
    }

    /// Whether a body with these headers has no encodings, or some that [`byte_stream`] decompresses.
    pub fn is_supported_encoding(headers: &HeaderMap) -> bool {
        encoding::is_supported(headers)
    }

    /// Returns the body of a response, decompressed.
    pub fn byte_stream(response: reqwest::Response) -> BoxStream<'static, Result<Bytes, BoxError>> {
        encoding::byte_stream(response)
    }
}
