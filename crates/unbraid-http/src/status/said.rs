//! What the body of an error says: JSON of some shape, a web page, plain text, or nothing.

use serde_json::Value;
use unbraid::ServerError;

use crate::secrets::Secrets;

/// What a body says, in whatever format.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Said {
    pub(super) message: Option<String>,
    pub(super) kind: Option<String>,
    pub(super) code: Option<String>,
    pub(super) param: Option<String>,
}

impl Said {
    pub(super) fn of(body: &str) -> Self {
        let body = body.trim();
        let message = match serde_json::from_str::<Value>(body) {
            Ok(value) => return of_json(value),
            Err(_) if body.is_empty() => None,
            Err(_) if body.starts_with('<') => title(body),
            Err(_) => Some(body.to_owned()),
        };
        Self {
            message,
            ..Self::default()
        }
    }
}

impl Said {
    /// By the body alone it would be redacted, but for a key that is split over two strings of its JSON.
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

fn of_json(value: Value) -> Said {
    // Google's compatible interface wraps its error into an array.
    let value = match value {
        Value::Array(items) => items.into_iter().next().unwrap_or_default(),
        other => other,
    };
    // FastAPI, and so vLLM and SGLang of some versions, lists what does not validate.
    let detail = value.pointer("/detail/0/msg").and_then(Value::as_str);
    let detail = detail.map(str::to_owned);
    let param = ["/error/param", "/param"]
        .iter()
        .find_map(|at| value.pointer(at)?.as_str());
    let param = param.map(str::to_owned);
    let error = ServerError::new(&value.to_string(), 0);
    Said {
        message: error.message().map(str::to_owned).or(detail),
        kind: error.kind().map(str::to_owned),
        code: error.code(),
        param,
    }
}

/// The title of a gateway's page.
fn title(page: &str) -> Option<String> {
    let lower = page.to_ascii_lowercase(); // of the same length, so offsets hold in both
    let open = lower.find("<title")?;
    let start = open + lower.get(open..)?.find('>')? + 1;
    let end = start + lower.get(start..)?.find("</title")?;
    let title = page.get(start..end)?.trim();
    (!title.is_empty()).then(|| title.to_owned())
}

#[cfg(test)]
mod tests;
