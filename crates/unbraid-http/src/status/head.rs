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
        self.header("x-should-retry") == Some("false")
    }

    /// How long the server asks to wait, by its headers: in milliseconds if the provider sends them, else in seconds, or
    /// until a date.
    pub(super) fn retry_after(&self) -> Option<Duration> {
        let number = |name| self.header(name)?.parse::<f64>().ok();
        let millis = number("retry-after-ms").map(|millis| millis / 1000.0);
        if let Some(wait) = millis.and_then(duration_from_secs) {
            return Some(wait);
        }
        if let Some(seconds) = number("retry-after") {
            return duration_from_secs(seconds);
        }
        let date = httpdate::parse_http_date(self.header("retry-after")?).ok()?;
        // A date in the past means no wait.
        Some(date.duration_since(SystemTime::now()).unwrap_or_default())
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok().map(str::trim)
    }
}

/// Converts seconds. A wait that exceeds the range of `Duration` is the longest one: `None` would mean to retry at once.
pub(super) fn duration_from_secs(seconds: f64) -> Option<Duration> {
    match Duration::try_from_secs_f64(seconds) {
        Ok(wait) => Some(wait),
        Err(_) => (seconds > 0.0).then_some(Duration::MAX),
    }
}
