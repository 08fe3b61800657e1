//! A recording in memory, and what is known about the request that it answers.

use std::{path::Path, sync::Arc};

use bytes::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use serde_json::Value;
use unbraid_core::{Config, Demux, Dialect};

use super::{
    request::ClientRequest,
    whole::{self, Whole},
};
use crate::{
    exchange::Exchange,
    exit::Failure,
    input::{Input, split_events},
};

/// A recorded response.
#[derive(Debug)]
pub(super) struct Recording {
    pub(super) events: Arc<[Bytes]>,
    /// The response to a request without streaming.
    pub(super) whole: Whole,
    /// The dialect of the answer, if there is one.
    pub(super) dialect: Option<Dialect>,
    pub(super) content_type: HeaderValue,
    /// The models that it answers for: that of the response, and that of the recorded request.
    models: Vec<String>,
    /// The body of the recorded request.
    request: Option<Value>,
}

impl Recording {
    pub(super) fn load(input: &Input, config: &Config) -> Result<Self, Failure> {
        let bytes = input.read_to_end()?;
        let exchange = input.path().map(Exchange::read).transpose()?.flatten();
        Ok(Self::new(bytes.into(), exchange, config))
    }

    pub(super) fn load_file(path: &Path, config: &Config) -> Result<Self, Failure> {
        Self::load(&Input::File(path.into()), config)
    }

    fn new(bytes: Bytes, exchange: Option<Exchange>, config: &Config) -> Self {
        let mut demux = Demux::new(config.clone());
        for line in bytes.split_inclusive(|&byte| byte == b'\n') {
            demux.feed(line);
            while demux.next_event().is_some() {} // the demux would keep the events otherwise
        }
        demux.finish();
        let recorded_type = exchange.as_ref().and_then(|exchange| {
            let recorded = exchange.response.headers.get(CONTENT_TYPE.as_str())?;
            HeaderValue::from_str(recorded.as_str()?).ok()
        });
        let content_type =
            recorded_type.unwrap_or_else(|| HeaderValue::from_static(content_type(&bytes)));
        let request = exchange.map(|exchange| exchange.request.body);
        let requested_model = request.as_ref().and_then(model).map(str::to_owned);
        let response_model = demux.metadata().model.as_deref().map(str::to_owned);
        Self {
            whole: Whole::new(&demux, &bytes),
            dialect: demux.metadata().dialect(),
            events: split_events(bytes).into(),
            content_type,
            models: requested_model.into_iter().chain(response_model).collect(),
            request,
        }
    }

    /// The stream of Gemini in the framing of a request with its content type, if the recording has the other one.
    pub(super) fn reframed(&self, request: &ClientRequest) -> Option<(&'static str, Vec<Bytes>)> {
        let is_stream = self.dialect == Some(Dialect::Gemini) && request.wants_stream();
        if !is_stream || matches!(self.whole, Whole::Recording) {
            return None;
        }
        let as_events = request.wants_events();
        let content_type = match as_events {
            true => "text/event-stream",
            false => "application/json",
        };
        Some((content_type, whole::reframed(&self.events, as_events)?))
    }

    /// Whether this was recorded for a request with this body. How the response is transferred makes no difference.
    pub(super) fn answers_request(&self, request: &Value) -> bool {
        let recorded = self.request.as_ref();
        recorded.is_some_and(|recorded| question(recorded) == question(request))
    }

    /// Whether this is a response of the model that a request names.
    pub(super) fn is_of_model(&self, requested: Option<&str>) -> bool {
        requested.is_some_and(|name| self.models.iter().any(|own| is_same_model(own, name)))
    }
}

fn model(request: &Value) -> Option<&str> {
    request.get("model")?.as_str()
}

/// A request without the fields that only say how the response is transferred.
fn question(request: &Value) -> Value {
    let mut question = request.clone();
    if let Value::Object(fields) = &mut question {
        fields.retain(|name, _| name != "stream" && name != "stream_options");
    }
    question
}

/// Whether a response of the model `own` answers a request for the model `name`. Providers add the date of the version:
/// `gpt-4o-mini` is answered by `gpt-4o-mini-2024-07-18`.
fn is_same_model(own: &str, name: &str) -> bool {
    const MIN_DIGITS: usize = 4;
    let Some(rest) = own.strip_prefix(name) else {
        return false;
    };
    let is_date = |date: &str| {
        let digits = date.bytes().filter(u8::is_ascii_digit).count();
        digits >= MIN_DIGITS && date.bytes().all(|b| b == b'-' || b.is_ascii_digit())
    };
    rest.is_empty() || rest.strip_prefix('-').is_some_and(is_date)
}

/// The content type that a server would have sent with these bytes.
fn content_type(bytes: &[u8]) -> &'static str {
    match bytes.trim_ascii_start().first() {
        // The length of a binary message, which is below 16 MiB.
        Some(0) => "application/vnd.amazon.eventstream",
        Some(b'[') => "application/json",
        Some(b'{') if serde_json::from_slice::<Value>(bytes).is_ok() => "application/json",
        Some(b'{') => "application/x-ndjson",
        Some(b'<') => "text/html",
        _ => "text/event-stream",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use unbraid_core::Config;

    use super::{Recording, is_same_model};

    #[test]
    fn a_version_answers_for_its_model() {
        assert!(is_same_model("gpt-4o-mini", "gpt-4o-mini"));
        assert!(is_same_model("gpt-4o-mini-2024-07-18", "gpt-4o-mini"));
        assert!(is_same_model("gpt-4-0613", "gpt-4"));
        assert!(!is_same_model("gpt-4o-mini-2024-07-18", "gpt-4o"));
        assert!(!is_same_model("gpt-4o", "gpt-4o-mini"));
        assert!(!is_same_model("llama-3", "llama"));
        assert!(!is_same_model("m-", "m"));
    }

    #[test]
    fn a_recording_answers_for_the_models_of_its_request_and_its_response() {
        let stream = "data: {\"model\":\"m-0613\",\"choices\":[]}\n\n";
        let exchange = json!({
            "request": { "method": "POST", "path": "/", "headers": {}, "body": { "model": "alias", "stream": true } },
            "response": { "status": 200, "headers": { "content-type": "text/x" } },
        });
        let exchange = serde_json::from_value(exchange).unwrap();
        let recording = Recording::new(stream.into(), Some(exchange), &Config::default());
        for (model, expected) in [("m", true), ("alias", true), ("other", false)] {
            assert_eq!(recording.is_of_model(Some(model)), expected, "{model}");
        }
        assert!(!recording.is_of_model(None));
        assert!(recording.answers_request(&json!({ "stream": false, "model": "alias" })));
        assert!(!recording.answers_request(&json!({ "model": "alias", "n": 2 })));
        assert_eq!(recording.content_type, "text/x");
    }
}
