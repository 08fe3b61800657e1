//! Cancelling and erasing.

use std::{sync::Arc, time::Duration};

use axum::{
    body::Body,
    extract::{Request, State},
    http::{Response, StatusCode},
};
use futures::StreamExt;
use serde_json::json;
use tokio::time::{Instant, sleep, timeout_at};
use unbraid_core::ChoiceIndex;
use unbraid_log::{Command, End, LogError, LogStatus, LogStore, Seq, StreamId};

use super::{
    Answer,
    access::{self, Action, ChoicePath, IdPath},
    json_response, no_content,
    read::parse_index,
    status,
};
use crate::{
    api_error::ApiError, gateway::Gateway, limits::CANCEL_TIMEOUT, metrics::UpstreamState,
    streams::Cancelled, view::StreamView,
};

/// How long gateways that share a log have to read the end of a running stream before it is erased: their readers get it, too.
const ERASE_GRACE: Duration = Duration::from_millis(250);

/// For how long, and how often, a cancel is sent again whose client has its answer.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(30);
const COMMAND_PAUSE: Duration = Duration::from_millis(250);

/// `DELETE /v1/streams/{id}/choices/{i}`
pub(super) async fn cancel_choice(
    State(gateway): State<Gateway>,
    ChoicePath(id, index): ChoicePath,
    request: Request,
) -> Answer {
    let (parts, _) = request.into_parts();
    let (id, found) = access::find(&gateway, &parts, &id, Action::Cancel).await?;
    let index = parse_index(&index)?;
    found.view.choice_end(index)?; // before anything is waited for: 404
    let deadline = Instant::now() + CANCEL_TIMEOUT;
    let has_ended = found.view.journal().end().is_some();
    let decoded = timeout_at(deadline, found.view.find_ends()).await;
    let known = found.view.choice_end(index)?;
    if known.is_none() && decoded.is_err() {
        let upstream = upstream_of_ended(&gateway, &id, &found.view);
        return Ok(cancelling_response(index, upstream));
    }
    if known.is_some() || has_ended {
        let end = known.unwrap_or(End::Cancelled);
        let upstream = upstream_of_ended(&gateway, &id, &found.view);
        return Ok(cancelled_response(index, end, upstream));
    }
    let confirmed = request_cancel(&gateway, &id, Some(index), deadline).await?;
    let upstream = match confirmed {
        Some(cancelled) => Some(cancelled.upstream),
        None => wait_for(&found.view, deadline, |view| {
            matches!(view.choice_end(index), Ok(Some(_))) || view.journal().end().is_some()
        })
        .await
        .then(|| upstream_of_ended(&gateway, &id, &found.view)),
    };
    // The producer may have been lost meanwhile.
    let _elapsed = timeout_at(deadline, found.view.find_ends()).await;
    // This gateway's copy of a log in another process may lack what the producer has just confirmed.
    let end = found.view.choice_end(index)?;
    match (
        upstream,
        end.or_else(|| confirmed.map(|cancelled| cancelled.end)),
    ) {
        (Some(upstream), Some(end)) => Ok(cancelled_response(index, end, upstream)),
        (upstream, _) => {
            let upstream = upstream.unwrap_or(UpstreamState::Continues);
            Ok(cancelling_response(index, upstream))
        }
    }
}

/// `POST /v1/streams/{id}/cancel`
pub(super) async fn cancel_all(
    State(gateway): State<Gateway>,
    IdPath(id): IdPath,
    request: Request,
) -> Answer {
    let (parts, _) = request.into_parts();
    let (id, found) = access::find(&gateway, &parts, &id, Action::Cancel).await?;
    if found.view.journal().end().is_none() {
        cancel_and_wait(&gateway, &id, &found.view).await?;
    }
    let status = status::current(&gateway, &id, &found.view, "cancelling").await;
    let code = match status.has_ended {
        true => StatusCode::OK,
        false => StatusCode::ACCEPTED,
    };
    Ok(json_response(code, status.body))
}

/// `DELETE /v1/streams/{id}`
pub(super) async fn erase(
    State(gateway): State<Gateway>,
    IdPath(id): IdPath,
    request: Request,
) -> Answer {
    let (parts, _) = request.into_parts();
    let (id, found) = access::find(&gateway, &parts, &id, Action::Own).await?;
    if found.view.journal().end().is_none() {
        let has_ended = cancel_and_wait(&gateway, &id, &found.view).await?;
        // The readers of a log in this process have the end already.
        if has_ended && gateway.memory().is_none() {
            sleep(ERASE_GRACE).await;
        }
    }
    let erased = gateway.inner.store.erase(&id).await;
    erased.map_err(|error| gateway.inner.views.failed(error))?;
    Ok(no_content())
}

/// Cancels all choices. Returns whether the log has the end of the stream within a second.
async fn cancel_and_wait(
    gateway: &Gateway,
    id: &StreamId,
    view: &Arc<StreamView>,
) -> Result<bool, ApiError> {
    let deadline = Instant::now() + CANCEL_TIMEOUT;
    request_cancel(gateway, id, None, deadline).await?;
    Ok(wait_for(view, deadline, |view| view.journal().end().is_some()).await)
}

/// Sends a cancel to the producer, directly or through the log. Returns the result if the producer has confirmed it in time.
async fn request_cancel(
    gateway: &Gateway,
    id: &StreamId,
    choice: Option<ChoiceIndex>,
    deadline: Instant,
) -> Result<Option<Cancelled>, ApiError> {
    let inner = &gateway.inner;
    if let Some(live) = inner.streams.live(id) {
        let cancelled = timeout_at(deadline, live.cancel(choice)).await;
        return Ok(cancelled.ok().flatten());
    }
    // In a task of its own: a log that is slow gets the command after the deadline.
    let sent = send_until_stored(Arc::clone(&inner.store), id.clone(), choice, deadline);
    let sent = tokio::spawn(sent);
    match timeout_at(deadline, sent).await {
        Ok(Ok(sent)) => sent.map_err(|error| inner.views.failed(error))?,
        Ok(Err(_panic)) => return Err(ApiError::INTERNAL),
        Err(_elapsed) => {}
    }
    Ok(None)
}

/// Sends a cancel. Until the deadline a failure is the client's answer. After it the client has a 202, so the
/// attempts go on for a while.
async fn send_until_stored(
    store: Arc<dyn LogStore>,
    id: StreamId,
    choice: Option<ChoiceIndex>,
    deadline: Instant,
) -> Result<(), LogError> {
    loop {
        let sent = send_cancel(&*store, &id, choice).await;
        let now = Instant::now();
        let is_temporary = matches!(&sent, Err(error) if error.is_temporary());
        if !is_temporary || now < deadline || now > deadline + COMMAND_TIMEOUT {
            if let (Err(error), true) = (&sent, now > deadline) {
                tracing::warn!(%id, %error, "a cancel was answered, and the log did not take it");
            }
            return sent;
        }
        sleep(COMMAND_PAUSE).await;
    }
}

async fn send_cancel(
    store: &dyn LogStore,
    id: &StreamId,
    choice: Option<ChoiceIndex>,
) -> Result<(), LogError> {
    match store.status(id).await? {
        LogStatus::Running { .. } => store.send_command(id, Command::Cancel(choice)).await,
        _ => Ok(()),
    }
}

/// Waits until the log shows something, until a deadline.
async fn wait_for(
    view: &Arc<StreamView>,
    deadline: Instant,
    is_met: impl Fn(&Arc<StreamView>) -> bool,
) -> bool {
    let mut records = view.journal().reader(view.journal().tail());
    while !is_met(view) {
        match timeout_at(deadline, records.next()).await {
            Ok(Some(Ok(_))) => {}
            // The end, or the deadline: what arrived at the same moment counts.
            Ok(Some(Err(_)) | None) | Err(_) => return is_met(view),
        }
    }
    true
}

/// Waits for the end of a stream.
pub(super) async fn ended(view: &Arc<StreamView>) {
    // No number is greater, so the reader gets nothing but the end.
    let mut records = view.journal().reader(Seq::MAX);
    while let Some(Ok(_)) = StreamExt::next(&mut records).await {}
}

/// The state of the upstream of a choice that has ended, as the log shows it to every gateway.
fn upstream_of_ended(gateway: &Gateway, id: &StreamId, view: &StreamView) -> UpstreamState {
    // Each choice of a fan-out has an upstream of its own, which ends with it.
    let is_fan_out = view.meta().fan_out || gateway.inner.streams.has_fanned_out(id);
    if is_fan_out || view.journal().end().is_some() || view.is_closed_by_cancels() {
        UpstreamState::Closed
    } else {
        UpstreamState::Continues
    }
}

fn cancelling_response(index: ChoiceIndex, upstream: UpstreamState) -> Response<Body> {
    let upstream = upstream.as_str();
    let body =
        json!({ "index": index.0, "state": "cancelling", "end": null, "upstream": upstream });
    json_response(StatusCode::ACCEPTED, body.to_string())
}

fn cancelled_response(index: ChoiceIndex, end: End, upstream: UpstreamState) -> Response<Body> {
    let upstream = upstream.as_str();
    let body =
        json!({ "index": index.0, "state": "ended", "end": end.as_str(), "upstream": upstream });
    json_response(StatusCode::OK, body.to_string())
}
