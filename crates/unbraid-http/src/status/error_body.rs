//! What the body of an error says: JSON of several shapes, a web page, text, or nothing.

use std::time::Duration;

use serde_json::Value;
use unbraid::ServerError;

use super::head::duration_from_secs;
use crate::secrets::Secrets;

/// The fields of an error's body, independent of its format.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct ErrorBody {
    pub(crate) message: Option<String>,
    pub(super) kind: Option<String>,
    pub(super) code: Option<String>,
    pub(crate) param: Option<String>,
    pub(super) request_id: Option<String>,
    /// How long the server asks to wait.
    pub(super) retry_after: Option<Duration>,
}

impl ErrorBody {
    pub(crate) fn parse(body: &str) -> Self {
        let body = body.trim();
        let message = match serde_json::from_str::<Value>(body) {
            Ok(value) => return Self::from_json(value),
            Err(_) if body.is_empty() => None,
            Err(_) if body.starts_with('<') => page_title(body),
            Err(_) => Some(body.to_owned()),
        };
        Self {
            message,
            ..Self::default()
        }
    }

    fn from_json(value: Value) -> Self {
        // Google's compatible interface wraps its error into an array.
        let value = match value {
            Value::Array(items) => items.into_iter().next().unwrap_or_default(),
            other => other,
        };
        // FastAPI, and thus some versions of vLLM and SGLang, lists the fields that do not validate.
        let detail = value.pointer("/detail/0/msg").and_then(Value::as_str);
        let detail = detail.map(str::to_owned);
        let param = ["/error/param", "/param"]
            .iter()
            .find_map(|pointer| value.pointer(pointer)?.as_str())
            .or_else(|| value.pointer("/detail/0/loc")?.as_array()?.last()?.as_str());
        let param = param.map(str::to_owned);
        let error = ServerError::new(&value.to_string(), 0);
        let text = |pointer| value.pointer(pointer).and_then(Value::as_str);
        // Google's type of error, beside a code that only repeats the status.
        let kind = error.kind().or_else(|| text("/error/status"));
        Self {
            message: error.message().map(str::to_owned).or(detail),
            kind: kind.map(str::to_owned),
            code: error.code(),
            param,
            request_id: text("/request_id").map(str::to_owned),
            retry_after: retry_delay(&value),
        }
    }

    /// Redacts each field. Redacting the body alone is not enough: a key may be split over two strings of its JSON.
    pub(super) fn redacted(self, secrets: &Secrets) -> Self {
        let redact = |text: Option<String>| text.map(|text| secrets.redact(&text));
        Self {
            message: redact(self.message),
            kind: redact(self.kind),
            code: redact(self.code),
            param: redact(self.param),
            request_id: redact(self.request_id),
            retry_after: self.retry_after,
        }
    }
}

/// The delay that Google's interfaces ask for in the body: `{"@type":"..google.rpc.RetryInfo","retryDelay":"34.5s"}`.
fn retry_delay(body: &Value) -> Option<Duration> {
    let mut details = body.pointer("/error/details")?.as_array()?.iter();
    let delay = details.find_map(|detail| detail.get("retryDelay")?.as_str())?;
    duration_from_secs(delay.strip_suffix('s')?.parse().ok()?)
}

/// The title of a gateway's page.
fn page_title(page: &str) -> Option<String> {
    let lower = page.to_ascii_lowercase(); // of the same length, so offsets apply to both
    let open = lower.find("<title")?;
    let start = open + lower.get(open..)?.find('>')? + 1;
    let end = start + lower.get(start..)?.find("</title")?;
    let title = page.get(start..end)?.trim();
    (!title.is_empty()).then(|| title.to_owned())
}

#[cfg(test)]
mod tests;
