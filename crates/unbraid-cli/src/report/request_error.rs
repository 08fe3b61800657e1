//! The error of a request as JSON: on its own if no answer came, or as the cause of another error.

use std::error::Error;

use serde_json::{Value, json};
use unbraid_core::{ChoiceEnd, Event, StreamError, TransportError};
use unbraid_http::HttpError;

/// The only event of a request that brought no answer.
pub(crate) fn event(error: &HttpError) -> Value {
    json!({ "seq": 0, "choice": null, "type": "error", "error": to_json(error) })
}

/// Adds the error of a request to the event of the choice or stream that it ended.
pub(crate) fn add_to_event<T: AsRef<str>>(event: &Event<T>, object: &mut Value) {
    if let Event::End(ChoiceEnd::Transport(error)) | Event::Error(StreamError::Transport(error)) =
        event
        && let Some(object) = object.get_mut("error")
    {
        add_cause(error, object);
    }
}

/// Adds the error of a request, if it caused this transport error, to the JSON of the transport error.
pub(super) fn add_cause(error: &TransportError, object: &mut Value) {
    if let (Some(cause), Value::Object(fields)) = (HttpError::find_in(error), object) {
        fields.insert("cause".into(), to_json(cause));
    }
}

/// Converts an error to its kind and text. The error of a server also has the status, the request's id, and the body, which
/// holds the server's message.
pub(super) fn to_json(error: &HttpError) -> Value {
    let mut object = json!({ "type": error.as_str(), "message": error.to_string() });
    if let Value::Object(fields) = &mut object {
        if let Some(answer) = error.status_error() {
            let body = answer.body_head();
            let body = serde_json::from_str(body).unwrap_or_else(|_| Value::from(body));
            fields.insert("status".into(), answer.status().into());
            fields.insert("request_id".into(), answer.request_id().into());
            fields.insert("body".into(), body);
        } else if let Some(source) = error.source() {
            fields.insert("source".into(), innermost(source).into());
        }
    }
    object
}

/// The message of the innermost error. Those in between only repeat that something failed.
pub(crate) fn innermost(error: &(dyn Error + 'static)) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}
