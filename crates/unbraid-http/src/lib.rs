//! An HTTP client for [`unbraid`]: it sends a request to an OpenAI-compatible endpoint and returns independent choices.
//!
//! A [`Client`] sends a [`Request`] to any endpoint that implements the OpenAI format, and returns
//! [`Completions`](unbraid::Completions) as soon as the response begins.
//!
//! ```no_run
//! use tokio::task::JoinSet;
//! use unbraid_http::{Client, Request};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::from_env()?; // OPENAI_BASE_URL, OPENAI_API_KEY
//! let request = Request::chat("gpt-4o-mini").user("Write a joke.").n(3);
//! let completions = client.send(&request).await?;
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
//! # Guarantees
//!
//! - The key and the values of additional headers never appear in an error, a log line or a `Debug` output, whether the server
//!   repeats them in a refusal or inside a stream. Redirects are not followed, so the key is sent to no other host.
//! - A status other than success is a [`StatusError`], never a stream.
//! - A request is sent again only if it certainly got no response: on the statuses 408, 409, 429 and 5xx, if no connection was
//!   established, and if an HTTP/2 server guarantees that it did not process the request. It is never sent again once a
//!   response has begun, because it would be billed twice.
//! - Dropping the last handle of a completion closes its connection. After the end of a response the connection is reused.
//!
//! # With a client of your own
//!
//! [`ResponseExt`] reads the response of any `reqwest` client. Nothing else of this crate is needed then.
//!
//! # Errors
//!
//! [`HttpError`] says why no stream was returned. The handles of `unbraid` return the errors within a stream. [`Error`] holds
//! all of them, so that a program can use `?` throughout.
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
#![cfg_attr(docsrs, feature(doc_cfg))]

/// Compiles and runs the programs of the README. They are here because this crate sees all libraries.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// Compiles the programs of the guide.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/requests.md")]
struct Guide;

mod body;
mod client;
mod endpoint;
mod error;
mod fan_out;
mod host;
pub mod limits;
mod request;
mod response;
mod secrets;
mod send;
mod status;
mod tls;

pub use body::Body;
pub use client::{Client, ClientBuilder};
pub use error::{BuildError, Error, HttpError};
pub use request::{ChoiceStrategy, Request, RequestError};
pub use response::ResponseExt;
pub use status::StatusError;
