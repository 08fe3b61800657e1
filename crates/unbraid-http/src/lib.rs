//! The whole way from a question to independent answers: requests over HTTP for [`unbraid`].
//!
//! A [`Client`] sends a [`Request`] to any endpoint that speaks the OpenAI format, and gives
//! [`Completions`](unbraid::Completions) as soon as the answer begins.
//!
//! ```no_run
//! use tokio::task::JoinSet;
//! use unbraid_http::{Client, Request};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::from_env()?; // OPENAI_BASE_URL, OPENAI_API_KEY
//! let request = Request::chat("gpt-4o-mini").user("Tell me a joke.").n(3);
//! let completions = client.send(&request).await?;
//! let mut choices = completions.choices();
//! let mut tasks = JoinSet::new();
//! while let Some(choice) = choices.next().await {
//!     let choice = choice?;
//!     tasks.spawn(async move { choice.finished().await });
//! }
//! while let Some(answer) = tasks.join_next().await {
//!     let answer = answer??;
//!     println!("{}: {}", answer.choice, answer.message.content);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # What holds
//!
//! - The key is in no error, no log and no `Debug`, and neither are the values of other headers. Redirects are not followed, so that it goes nowhere else.
//! - A status other than success is a [`StatusError`], never a stream.
//! - A request is sent again only where it surely brought no answer: on the statuses 408, 409, 429 and 5xx, where no
//!   connection came about, and where a server of HTTP/2 guarantees that it did not process it. Once an answer has begun, never: it would be billed twice.
//! - Dropping the last handle of a completion closes its connection; after an answer's end it is used again.
//!
//! Whoever has a client already needs [`ResponseExt`] only.

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
pub mod limits;
mod request;
mod response;
mod secrets;
mod send;
mod status;
mod tls;

pub use body::Body;
pub use client::{Client, ClientBuilder};
pub use error::{BuildError, HttpError};
pub use fan_out::ChoiceStrategy;
pub use request::{Request, RequestError};
pub use response::ResponseExt;
pub use status::StatusError;
