//! `GET /v1/streams/{id}`: the status object.

use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use axum::{
    extract::{Request, State},
    http::StatusCode,
};
use serde_json::{Value, json, value::RawValue};
use tokio::{task::JoinError, time::timeout};
use unbraid_log::{End, LogStatus, StreamId};

use super::{
    Answer,
    access::{self, Action, IdPath},
    control::ended,
    create::request::max_choices,
    json_response, stream_url,
};
use crate::{
    gateway::Gateway,
    view::{self, StreamView},
    views::Found,
};

pub(super) async fn status(
    State(gateway): State<Gateway>,
    IdPath(id): IdPath,
    request: Request,
) -> Answer {
    let (parts, _) = request.into_parts();
    let (id, found) = access::find(&gateway, &parts, &id, Action::Read).await?;
    if found.view.awaits_end() {
        // A client that has read the upstream's error has read all of the stream. The seal is being written.
        let _timed_out = timeout(SEAL_TIMEOUT, ended(&found.view)).await;
    }
    let status = with_expiry(&gateway, &id, found, RUNNING).await;
    Ok(json_response(StatusCode::OK, status.body))
}

/// How long a status waits for the seal of a stream whose last event was read. With a log that fails, it is `running`.
const SEAL_TIMEOUT: Duration = Duration::from_secs(1);

/// The state of a stream that has not ended.
pub(super) const RUNNING: &str = "running";

/// A status object.
#[derive(Default)]
pub(super) struct Status {
    pub(super) body: String,
    pub(super) has_ended: bool,
}

/// The status object of a stream as it is now. Unless it has ended, its state is `running`.
pub(super) async fn current(
    gateway: &Gateway,
    id: &StreamId,
    view: &Arc<StreamView>,
    running: &'static str,
) -> Status {
    let found = Found {
        view: Arc::clone(view),
        expires: None,
    };
    with_expiry(gateway, id, found, running).await
}

/// The status object, with the expiry of a stream whose end is newer than what was found. A stream whose seal is not in the log
/// does not expire yet.
async fn with_expiry(
    gateway: &Gateway,
    id: &StreamId,
    found: Found,
    running: &'static str,
) -> Status {
    let (view, expires) = (Arc::clone(&found.view), found.expires);
    let status = status_object(gateway, id, found, running).await;
    if !status.has_ended || expires.is_some() {
        return status;
    }
    match gateway.inner.store.status(id).await {
        Ok(LogStatus::Ended { expires, .. }) => {
            let expires = Some(expires);
            status_object(gateway, id, Found { view, expires }, running).await
        }
        Ok(_) | Err(_) => status,
    }
}

/// Writes the status object. The usage so far, and how the choices of a lost stream ended, are found by decoding the
/// stream, which must not hold up other tasks. Otherwise nothing is decoded, and the status does not wait behind those that
/// are.
async fn status_object(
    gateway: &Gateway,
    id: &StreamId,
    found: Found,
    running: &'static str,
) -> Status {
    found.view.find_ends().await;
    let view = Arc::clone(&found.view);
    let end = view.journal().end();
    let is_lost = matches!(&end, Some(Ok(end)) if end.end == End::ProducerLost);
    // The end may have arrived in this moment.
    let has_own_end = matches!(&end, Some(Ok(_))) && !is_lost && !view.lacks_reasons();
    let write = {
        let (gateway, id) = (gateway.clone(), id.clone());
        move || write_status(&gateway, &id, &found, running)
    };
    if has_own_end {
        return write();
    }
    let decode = move || {
        view.decode_ends();
        write()
    };
    let written = gateway.inner.decoding.run(decode).await;
    match written.map_err(JoinError::try_into_panic) {
        Ok(status) => status,
        // The request is answered as if it had panicked itself.
        Err(Ok(panic)) => std::panic::resume_unwind(panic),
        // The runtime shuts down, and nothing that is written reaches a client.
        Err(Err(_cancelled)) => Status::default(),
    }
}

fn write_status(gateway: &Gateway, id: &StreamId, found: &Found, running: &str) -> Status {
    let meta = found.view.meta();
    let max_choices = max_choices(gateway.inner.options.max_n);
    let status = found.view.status(max_choices);
    let url = stream_url(gateway, id);
    let state = |has_ended, running| if has_ended { "ended" } else { running };
    let choices: Vec<Value> = status
        .choices
        .iter()
        .map(|choice| {
            let index = choice.index.0;
            json!({
                "index": index,
                "state": state(choice.end.is_some(), RUNNING),
                "end": choice.end.map(|end| end.as_str()),
                "finish_reason": choice.finish_reason,
                "seq": choice.seq.0,
                "url": format!("{url}/choices/{index}"),
            })
        })
        .collect();
    let end = status.end.as_ref();
    // Objects of the upstream keep their text.
    let raw =
        |text: Option<&str>| text.and_then(|text| RawValue::from_string(text.to_owned()).ok());
    let live_usage = end.is_none().then(|| found.view.usage()).flatten();
    let usage = raw(end
        .and_then(|end| end.usage.as_deref())
        .or(live_usage.as_deref()));
    // A stream that another gateway has sealed as lost has no error of its producer.
    let error = raw(end.and_then(|end| end.error.as_deref())).or_else(|| {
        let end = end.filter(|end| end.end.is_error())?;
        serde_json::value::to_raw_value(&view::error_object(end.end, None)).ok()
    });
    let body = StatusObject {
        id: id.as_str(),
        object: "stream",
        endpoint: &meta.endpoint,
        model: meta.model.as_deref(),
        created: meta.created,
        state: state(end.is_some(), running),
        end: end.map(|end| end.end.as_str()),
        seq: status.seq.0,
        expires: found.expires.map(unix),
        durability: durability(gateway, id),
        fan_out: meta.fan_out || gateway.inner.streams.has_fanned_out(id),
        error,
        usage,
        url: &url,
        events_url: format!("{url}/events"),
        choices,
    };
    Status {
        body: serde_json::to_string(&body).unwrap_or_default(),
        has_ended: end.is_some(),
    }
}

/// Whether another gateway could read the stream now.
fn durability(gateway: &Gateway, id: &StreamId) -> &'static str {
    if gateway.inner.streams.is_degraded(id) {
        "degraded"
    } else {
        "replay"
    }
}

#[derive(serde::Serialize)]
struct StatusObject<'s> {
    id: &'s str,
    object: &'s str,
    endpoint: &'s str,
    model: Option<&'s str>,
    created: u64,
    state: &'s str,
    end: Option<&'s str>,
    seq: u64,
    expires: Option<u64>,
    durability: &'s str,
    fan_out: bool,
    error: Option<Box<RawValue>>,
    usage: Option<Box<RawValue>>,
    url: &'s str,
    events_url: String,
    choices: Vec<Value>,
}

fn unix(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH)
        .map_or(0, |time| time.as_secs())
}
