//! The gateway: any OpenAI client, a stream for each choice, resumable and cancellable.
//!
//! A [`Gateway`] forwards each request to an OpenAI-compatible upstream, and keeps the answer as a *stream* that outlives
//! the connection. An authorized client reads it again from any point, one choice at a time if it likes, and cancels all of
//! it or one choice. `n` works with providers that reject it.
//!
//! # Five minutes
//!
//! ```no_run
//! use tokio::{net::TcpListener, signal};
//! use unbraid_gateway::{Gateway, Server};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let gateway = Gateway::builder("http://127.0.0.1:8000/v1").build()?;
//! let listener = TcpListener::bind("127.0.0.1:8080").await?;
//! let stopped = async { drop(signal::ctrl_c().await) };
//! Server::new(gateway).serve(listener, stopped).await?;
//! # Ok(())
//! # }
//! ```
//!
//! The command `unbraid serve` is a shell over this. The paths, headers and codes of the HTTP interface are those of the
//! command, too.
//!
//! # In an application of your own
//!
//! [`Gateway::service`] is a tower service, which axum mounts below a path. An application that authenticates its users
//! itself inserts a [`Principal`] into each request; each then reads and cancels only its own streams.
//!
//! ```
//! use axum::{Router, extract::Request, middleware::{self, Next}, response::Response};
//! use unbraid_gateway::{Gateway, Principal};
//!
//! async fn authenticate(mut request: Request, next: Next) -> Response {
//!     // The application's own session, cookie or token.
//!     request.extensions_mut().insert(Principal::new("alice"));
//!     next.run(request).await
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), unbraid_gateway::BuildError> {
//! let gateway = Gateway::builder("http://127.0.0.1:8000/v1")
//!     .upstream_key("the provider's key")
//!     .public_path("/llm")
//!     .build()?;
//! let app: Router = Router::new()
//!     .nest_service("/llm", gateway.service())
//!     .layer(middleware::from_fn(authenticate));
//! # drop(app);
//! # Ok(())
//! # }
//! ```
//!
//! # Parts
//!
//! - [`GatewayBuilder`] has the options; [`FanOut`] and [`OnLogFailure`] are the values of two of them.
//! - [`Server`] serves a gateway on a socket of its own, with HTTP/1.1, HTTP/2 and TLS, and drains it.
//! - [`NewKey`] creates a key for an auth file.
//! - [`unbraid_log`] is where streams are kept.
//!
//! # Rules
//!
//! - Data of the upstream is passed on unchanged, one event for one event.
//! - A truncated answer never ends with a clean `[DONE]`.
//! - One generation actor owns each upstream connection. If it is killed, its log is sealed, and its readers end.
//! - No error, log or metric contains a key, a prompt or an answer.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![warn(clippy::indexing_slicing, clippy::expect_used, clippy::panic)]

mod api_error;
mod auth;
mod bodies;
mod config;
mod decoding;
mod error;
mod fan_out;
mod fields;
mod gateway;
mod generation;
mod header_list;
mod idempotency;
mod limits;
mod metrics;
mod reader;
mod routes;
mod server;
mod streams;
mod sync;
mod timer;
mod upstream;
mod upstream_error;
pub(crate) mod view;
mod views;

pub use auth::keys::{NewKey, Principal};
pub use config::{FanOut, GatewayBuilder, OnLogFailure, UnknownOption};
pub use error::BuildError;
pub use gateway::{Gateway, GatewayService};
pub use server::Server;
pub use unbraid_log::LogStore;
