//! Cancelling and erasing.

use std::{sync::Arc, time::Duration};

use axum::{
    body::Body,
    extract::{Request, State},
    http::{Response, StatusCode},
};
use futures::StreamExt;
use serde_json::json;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use unbraid_core::ChoiceIndex;
use unbraid_log::{Command, End, LogStatus, Seq, StreamId};

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

/// `DELETE /v1/streams/{id}/choices/{i}`
pub(super) async fn cancel_choice(
    State(gateway): State<Gateway>,
    ChoicePath(id, index): ChoicePath,
    request: Request,
) -> Answer {
    let (parts, _) = request.into_parts();
    let (id, found) = access::find(&gateway, &parts, &id, Action::Cancel).await?;
    let index = parse_index(&index)?;
    let known = found.view.choice_end(index)?;
    let has_ended = found.view.journal().end().is_some();
    if known.is_some() || has_ended {
        let end = known.unwrap_or(End::Cancelled);
        let upstream = upstream_of_ended(&gateway, &id, &found.view);
        return Ok(cancelled_response(index, end, upstream));
    }
    let confirmed = request_cancel(&gateway, &id, Some(index)).await?;
    let upstream = match confirmed {
        Some(cancelled) => Some(cancelled.upstream),
        None => wait_for(&found.view, |view| {
            matches!(view.choice_end(index), Ok(Some(_))) || view.journal().end().is_some()
        })
        .await
        .then(|| upstream_of_ended(&gateway, &id, &found.view)),
    };
    // This gateway's copy of a log in another process may lack what the producer has just confirmed.
    let end = found.view.choice_end(index)?;
    match (
        upstream,
        end.or_else(|| confirmed.map(|cancelled| cancelled.end)),
    ) {
        (Some(upstream), Some(end)) => Ok(cancelled_response(index, end, upstream)),
        _ => {
            let body = json!({ "index": index.0, "state": "cancelling", "end": null, "upstream": "continues" });
            Ok(json_response(StatusCode::ACCEPTED, body.to_string()))
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
        request_cancel(&gateway, &id, None).await?;
        wait_for(&found.view, |view| view.journal().end().is_some()).await;
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
        request_cancel(&gateway, &id, None).await?;
        let has_ended = wait_for(&found.view, |view| view.journal().end().is_some()).await;
        // The readers of a log in this process have the end already.
        if has_ended && gateway.memory().is_none() {
            sleep(ERASE_GRACE).await;
        }
    }
    let erased = gateway.inner.store.erase(&id).await;
    erased.map_err(|error| gateway.inner.views.failed(error))?;
    Ok(no_content())
}

/// Sends a cancel to the producer, directly or through the log. Returns the result if the producer has confirmed it.
async fn request_cancel(
    gateway: &Gateway,
    id: &StreamId,
    choice: Option<ChoiceIndex>,
) -> Result<Option<Cancelled>, ApiError> {
    if let Some(live) = gateway.inner.streams.live(id) {
        let cancelled = timeout(CANCEL_TIMEOUT, live.cancel(choice)).await;
        if let Ok(Some(cancelled)) = cancelled {
            return Ok(Some(cancelled));
        }
        return Ok(None);
    }
    let inner = &gateway.inner;
    let failed = |error| inner.views.failed(error);
    let running = inner.store.status(id).await.map_err(failed)?;
    if matches!(running, LogStatus::Running { .. }) {
        let command = Command::Cancel(choice);
        let sent = inner.store.send_command(id, command).await;
        sent.map_err(failed)?;
    }
    Ok(None)
}

/// Waits until the log shows something, for at most a second.
async fn wait_for(view: &Arc<StreamView>, is_met: impl Fn(&Arc<StreamView>) -> bool) -> bool {
    let deadline = Instant::now() + CANCEL_TIMEOUT;
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

fn cancelled_response(index: ChoiceIndex, end: End, upstream: UpstreamState) -> Response<Body> {
    let upstream = upstream.as_str();
    let body =
        json!({ "index": index.0, "state": "ended", "end": end.as_str(), "upstream": upstream });
    json_response(StatusCode::OK, body.to_string())
}
