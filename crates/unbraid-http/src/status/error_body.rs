//! What the body of an error says: JSON of several shapes, a web page, text, or nothing.

use serde_json::Value;
use unbraid::ServerError;

use crate::secrets::Secrets;

/// The fields of an error's body, independent of its format.
#[derive(Debug, Default, PartialEq)]
pub(super) struct ErrorBody {
    pub(super) message: Option<String>,
    pub(super) kind: Option<String>,
    pub(super) code: Option<String>,
    pub(super) param: Option<String>,
}

impl ErrorBody {
    pub(super) fn parse(body: &str) -> Self {
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
            .find_map(|pointer| value.pointer(pointer)?.as_str());
        let param = param.map(str::to_owned);
        let error = ServerError::new(&value.to_string(), 0);
        Self {
            message: error.message().map(str::to_owned).or(detail),
            kind: error.kind().map(str::to_owned),
            code: error.code(),
            param,
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
        }
    }
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
