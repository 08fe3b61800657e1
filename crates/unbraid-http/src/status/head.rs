//! The head of a response that is not a success.

use std::time::{Duration, SystemTime};

use reqwest::{Response, StatusCode, Url, header::HeaderMap};

/// Status, headers and address of a response, which outlive the response while its body is read.
pub(crate) struct Head {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) url: Url,
}

impl Head {
    pub(crate) fn of(response: &Response) -> Self {
        Self {
            status: response.status(),
            headers: response.headers().clone(),
            url: response.url().clone(),
        }
    }

    /// The id of the request: of OpenAI and most others, of Anthropic, of Azure's gateway, of Cohere and of Bedrock, in this
    /// order.
    pub(super) fn request_id(&self) -> Option<&str> {
        const NAMES: [&str; 5] = [
            "x-request-id",
            "request-id",
            "apim-request-id",
            "x-debug-trace-id",
            "x-amzn-requestid",
        ];
        NAMES
            .iter()
            .find_map(|name| self.header(name))
            .filter(|id| !id.is_empty())
    }

    /// Whether the server asks the client not to send the request again.
    pub(super) fn forbids_retry(&self) -> bool {
        forbids_retry(&self.headers)
    }

    /// How long the server asks to wait.
    pub(super) fn retry_after(&self) -> Option<Duration> {
        retry_after(&self.headers)
    }

    fn header(&self, name: &str) -> Option<&str> {
        header(&self.headers, name)
    }
}

/// Whether a server asks by its headers not to send a request again.
pub(crate) fn forbids_retry(headers: &HeaderMap) -> bool {
    header(headers, "x-should-retry") == Some("false")
}

/// How long a server asks to wait, by its headers: in milliseconds if the provider sends them, else in seconds, or until a
/// date.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let number = |name| header(headers, name)?.parse::<f64>().ok();
    let millis = number("retry-after-ms").map(|millis| millis / 1000.0);
    if let Some(wait) = millis.and_then(duration_from_secs) {
        return Some(wait);
    }
    if let Some(seconds) = number("retry-after") {
        return duration_from_secs(seconds);
    }
    let date = httpdate::parse_http_date(header(headers, "retry-after")?).ok()?;
    // A date in the past means no wait.
    Some(date.duration_since(SystemTime::now()).unwrap_or_default())
}

fn header<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}

/// Converts seconds. A wait that exceeds the range of `Duration` is the longest one: `None` would mean to retry at once.
pub(super) fn duration_from_secs(seconds: f64) -> Option<Duration> {
    match Duration::try_from_secs_f64(seconds) {
        Ok(wait) => Some(wait),
        Err(_) => (seconds > 0.0).then_some(Duration::MAX),
    }
}
