//! The error of a request as JSON: alone if no answer came, or as the cause of a choice's end.

use std::error::Error;

use serde_json::{Value, json};
use unbraid_core::{ChoiceEnd, Config, Demux, Event, Prompt, StreamError, TransportError};
use unbraid_http::HttpError;

use crate::account::Account;

/// What `--json` prints if no answer came: the object of an answer without choices, and the request's error in it.
pub(super) fn no_answer(error: &HttpError) -> Value {
    let mut demux = Demux::new(Config::default());
    demux.abort(StreamError::Cancelled);
    let account = Account::of_demux(&demux, &Prompt::default());
    let mut response: Value =
        serde_json::from_str(&account.into_json_text()).unwrap_or_else(|_| json!({}));
    if let Some(Value::Object(account)) = response.get_mut("unbraid") {
        account.insert("end".into(), error.as_str().into());
        account.insert("error".into(), to_json(error));
    }
    response
}

/// What `--events` prints if no answer came.
pub(super) fn no_answer_event(error: &HttpError) -> Value {
    json!({ "seq": 0, "choice": null, "type": "error", "error": to_json(error) })
}

/// Adds the error of a request to that of the choice or stream that it ended.
pub(crate) fn add_to_event<T: AsRef<str>>(event: &Event<T>, object: &mut Value) {
    if let Event::End(ChoiceEnd::Transport(failed)) | Event::Error(StreamError::Transport(failed)) =
        event
        && let Some(error) = object.get_mut("error")
    {
        add_to(failed, error);
    }
}

/// Adds the error of a request to an error object.
pub(crate) fn add_to(failed: &TransportError, object: &mut Value) {
    if let (Some(cause), Value::Object(fields)) = (HttpError::find_in(failed), object) {
        fields.insert("cause".into(), to_json(cause));
    }
}

/// Its kind and text; of a server that answered also the status, the request's id, and the body, which holds its message.
fn to_json(error: &HttpError) -> Value {
    let mut object = json!({ "type": error.as_str(), "message": error.to_string() });
    if let Value::Object(fields) = &mut object {
        if let Some(answer) = error.status_error() {
            let body = answer.body_head();
            let body = serde_json::from_str(body).unwrap_or_else(|_| Value::from(body));
            fields.insert("status".into(), answer.status().into());
            fields.insert("request_id".into(), answer.request_id().into());
            fields.insert("body".into(), body);
        } else if let Some(source) = error.source() {
            fields.insert("source".into(), super::told::innermost(source).into());
        }
    }
    object
}
