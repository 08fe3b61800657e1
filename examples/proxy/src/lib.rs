//! A proxy between a browser page and a provider in the OpenAI format: each choice has its own event stream to the page.
//!
//! - `POST /completions` with `{"question":"..","choices":3}` asks the provider once, with `n`, and returns
//!   `{"id":1,"choices":3}`.
//! - `GET /completions/{id}/choices/{index}` is the event stream of one choice. Each event is one of
//!   [`unbraid::Event`], with its number as the id, so that a browser that reconnects gets the rest.
//!
//! A choice without a connection is freed after a [grace period](Proxy::grace): its text is dropped, and what still arrives
//! for it. When all choices of a request are freed, its connection to the provider is closed.

mod choice_stream;
mod demo;
mod page;
mod session;

use std::{sync::Arc, time::Duration};

use axum::{
    Json, Router,
    extract::{DefaultBodyLimit, Path, Request, State},
    http::{HeaderMap, StatusCode, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use serde::Deserialize;
use serde_json::json;
use unbraid_http::{Client, HttpError, Request as Completion};

pub use demo::{Recording, demo};
use session::Sessions;

/// The most choices of one request. A browser opens six connections to a server at most, and the page needs one for itself.
pub const MAX_CHOICES: u32 = 5;

/// The most bytes of a request of the page.
const MAX_BODY: usize = 64 * 1024;

/// The proxy. Its clones share their sessions.
#[derive(Debug, Clone)]
pub struct Proxy {
    client: Client,
    model: Arc<str>,
    grace: Duration,
    sessions: Sessions,
}

impl Proxy {
    /// A proxy that asks the server of this client.
    #[must_use]
    pub fn new(client: Client, model: impl Into<Arc<str>>) -> Self {
        Self {
            client,
            model: model.into(),
            grace: Duration::from_secs(5),
            sessions: Sessions::default(),
        }
    }

    /// Sets how long a choice lives without a connection, so that a browser can reconnect. The default is 5 seconds.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// How many requests have a choice that is not freed.
    #[must_use]
    pub fn open_requests(&self) -> usize {
        self.sessions.len()
    }

    /// The page and the two addresses that it uses.
    pub fn router(self) -> Router {
        Router::new()
            .merge(page::router())
            .route("/completions", post(ask))
            .route("/completions/{id}/choices/{index}", get(choice))
            .layer(DefaultBodyLimit::max(MAX_BODY))
            .layer(middleware::from_fn(refuse_foreign_names))
            .with_state(self)
    }
}

#[derive(Deserialize)]
struct Question {
    question: String,
    choices: u32,
}

/// Sends the question. The request is over when the provider has begun to answer.
async fn ask(State(proxy): State<Proxy>, Json(asked): Json<Question>) -> Response {
    let n = asked.choices;
    if !(1..=MAX_CHOICES).contains(&n) {
        let message = format!("a request has 1 to {MAX_CHOICES} choices");
        return failure(StatusCode::BAD_REQUEST, &message);
    }
    let Some(slot) = proxy.sessions.reserve() else {
        return failure(StatusCode::SERVICE_UNAVAILABLE, "too many open requests");
    };
    let request = Completion::chat(&*proxy.model).user(asked.question).n(n);
    match proxy.client.send(&request).await {
        Ok(completions) => {
            let id = proxy.sessions.open(completions, n, proxy.grace, slot);
            Json(json!({ "id": id, "choices": n })).into_response()
        }
        Err(error) => failure(StatusCode::BAD_GATEWAY, &describe(&error)),
    }
}

/// The error of the provider, with its own message if it sent one.
fn describe(error: &HttpError) -> String {
    let message = error.status_error().and_then(|refused| refused.message());
    message.map_or_else(
        || error.to_string(),
        |message| format!("{error}: {message}"),
    )
}

/// The event stream of one choice.
async fn choice(
    State(proxy): State<Proxy>,
    Path((id, index)): Path<(u64, u32)>,
    headers: HeaderMap,
) -> Response {
    let Some((completions, viewer)) = proxy.sessions.watch(id, index) else {
        // Any status but 200 also ends the reconnects of an `EventSource`.
        return failure(StatusCode::GONE, "the choice is gone");
    };
    let last = headers
        .get("last-event-id")
        .and_then(|id| id.to_str().ok()?.parse().ok());
    choice_stream::response(completions, index, viewer, last)
}

fn failure(status: StatusCode, message: &str) -> Response {
    (status, Json(json!({ "error": message }))).into_response()
}

/// Refuses requests to a name of somebody's domain, which could point here (DNS rebinding) so that its pages share our origin.
async fn refuse_foreign_names(request: Request, next: Next) -> Response {
    let host = request
        .headers()
        .get(header::HOST)
        .and_then(|host| host.to_str().ok());
    let name = host.and_then(|host| host.parse::<axum::http::uri::Authority>().ok());
    let is_ours = name.is_some_and(|name| {
        let name = name.host().trim_matches(['[', ']']);
        name == "localhost" || name.parse::<std::net::IpAddr>().is_ok()
    });
    if !is_ours {
        return failure(StatusCode::FORBIDDEN, "this proxy has no public name");
    }
    next.run(request).await
}
