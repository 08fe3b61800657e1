//! An answer that is none: its status, and what the provider says about it.

mod said;

use std::{
    fmt,
    sync::Arc,
    time::{Duration, SystemTime},
};

use self::said::Said;
use crate::{
    body::Incoming,
    error,
    limits::{MAX_ERROR_BODY_BYTES, MAX_ERROR_BODY_TIME, MAX_RETRY_AFTER},
    secrets::Secrets,
};
use futures::StreamExt;
use reqwest::{Response, StatusCode, Url, header::HeaderMap};

/// An answer that brought no completions: a status other than success, or a web page.
///
/// `Display` and `Debug` give the status, the path where it was not found, and the provider's type, code and request id where
/// these are plain identifiers, and the wait that the server asks for where it is too long for another attempt. Its message and
/// body, which may hold parts of the prompt, are given only when asked for. What the client sent as a secret is replaced in them
/// by `[key]`, however it is escaped: its key, the values of further headers, and the query values of its address.
///
/// # Examples
///
/// ```no_run
/// use unbraid_http::{Client, HttpError, Request};
///
/// # async fn f(client: Client, request: Request) -> Result<(), HttpError> {
/// match client.send(&request).await {
///     Err(HttpError::Status(refused)) if refused.status() == 429 => {
///         eprintln!("{refused}; again in {:?}", refused.retry_after());
///     }
///     other => drop(other?),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct StatusError(Arc<Inner>);

struct Inner {
    status: u16,
    reason: &'static str,
    address: String,
    request_id: Option<String>,
    retry_after: Option<Duration>,
    told_not_to_retry: bool,
    body: String,
    said: Said,
    attempts: u32,
}

/// What an answer begins with.
pub(crate) struct Head {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    url: Url,
}

impl Head {
    pub(crate) fn of(response: &Response) -> Self {
        Self {
            status: response.status(),
            headers: response.headers().clone(),
            url: response.url().clone(),
        }
    }
}

impl StatusError {
    /// The status: 429.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.0.status
    }

    /// Who answered: host, port and path of the address that was asked, without its query.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.0.address
    }

    /// The provider's id of the request, for its support.
    #[must_use]
    pub fn request_id(&self) -> Option<&str> {
        self.0.request_id.as_deref()
    }

    /// How long the server asks to wait before another attempt, counted from its answer.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }

    /// The provider's message: of an error object, the title of a page, or the text as it is.
    #[must_use]
    pub fn message(&self) -> Option<&str> {
        self.0.said.message.as_deref()
    }

    /// The provider's type of error, if it gave one.
    #[must_use]
    pub fn kind(&self) -> Option<&str> {
        self.0.said.kind.as_deref()
    }

    /// The provider's code as text, be it a number or a word.
    #[must_use]
    pub fn code(&self) -> Option<&str> {
        self.0.said.code.as_deref()
    }

    /// The parameter that is complained about, if the provider names one.
    #[must_use]
    pub fn param(&self) -> Option<&str> {
        self.0.said.param.as_deref()
    }

    /// The body's first [`MAX_ERROR_BODY_BYTES`](crate::limits::MAX_ERROR_BODY_BYTES), as text.
    #[must_use]
    pub fn body_head(&self) -> &str {
        &self.0.body
    }

    /// How many attempts were made, this last one included.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        self.0.attempts
    }

    /// Whether another attempt may be answered otherwise.
    pub(crate) fn is_passing(&self) -> bool {
        matches!(self.0.status, 408 | 409 | 429 | 500..=599) && !self.0.told_not_to_retry
    }

    /// Reads what an answer says: a bounded part of its body, for a bounded time. `begun` has come already.
    pub(crate) async fn read(
        head: Head,
        begun: Vec<u8>,
        rest: Incoming,
        secrets: &Secrets,
        attempts: u32,
    ) -> Self {
        let Head {
            status,
            headers,
            url,
        } = head;
        let mut secrets = secrets.clone();
        secrets.add_url(&url); // that of another client is known by the answer only
        let body = secrets.redact(&body(begun, rest).await);
        Self(Arc::new(Inner {
            status: status.as_u16(),
            reason: status.canonical_reason().unwrap_or_default(),
            address: secrets.redact(&format!("{}{}", error::host(&url), url.path())),
            request_id: request_id(&headers).map(|id| secrets.redact(&id)),
            retry_after: retry_after(&headers),
            told_not_to_retry: header(&headers, "x-should-retry") == Some("false"),
            said: Said::of(&body).redacted(&secrets),
            body,
            attempts,
        }))
    }

    /// The wait that the server asks for, if it is too long to be waited for.
    fn excessive_wait(&self) -> Option<Duration> {
        let wait = self.retry_after()?;
        (self.is_passing() && wait > MAX_RETRY_AFTER).then_some(wait)
    }
}

/// What comes of a body that may be cut, stall or never end: the status is told either way.
async fn body(mut bytes: Vec<u8>, mut rest: Incoming) -> String {
    let reading = async {
        while bytes.len() < MAX_ERROR_BODY_BYTES {
            let Some(Ok(chunk)) = rest.next().await else {
                break;
            };
            bytes.extend_from_slice(&chunk);
        }
    };
    // What came until then is kept.
    let _whole = tokio::time::timeout(MAX_ERROR_BODY_TIME, reading).await;
    bytes.truncate(MAX_ERROR_BODY_BYTES);
    String::from_utf8_lossy(&bytes).into_owned()
}

fn header<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}

/// OpenAI and most others, Anthropic, Azure's gateway, in this order.
fn request_id(headers: &HeaderMap) -> Option<String> {
    ["x-request-id", "request-id", "apim-request-id"]
        .iter()
        .find_map(|name| header(headers, name))
        .filter(|id| !id.is_empty())
        .map(str::to_owned)
}

/// Milliseconds where a provider gives them; else seconds, or a date.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let number = |name| header(headers, name)?.parse::<f64>().ok();
    let millis = number("retry-after-ms").map(|millis| millis / 1000.0);
    if let Some(wait) = millis.and_then(seconds) {
        return Some(wait);
    }
    if let Some(number) = number("retry-after") {
        return seconds(number);
    }
    let date = httpdate::parse_http_date(header(headers, "retry-after")?).ok()?;
    // A date in the past: at once.
    Some(date.duration_since(SystemTime::now()).unwrap_or_default())
}

/// A wait that no `Duration` can hold is a long one, and not none at all: that would mean to ask again at once.
fn seconds(seconds: f64) -> Option<Duration> {
    match Duration::try_from_secs_f64(seconds) {
        Ok(wait) => Some(wait),
        Err(_) => (seconds > 0.0).then_some(Duration::MAX),
    }
}

/// The text if it is a plain identifier, so that no payload slips into a log.
fn identifier(text: Option<&str>) -> Option<&str> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
    text.filter(|text| !text.is_empty() && text.len() <= 64 && text.bytes().all(plain))
}

impl fmt::Display for StatusError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "status {}", self.0.status)?;
        if !self.0.reason.is_empty() {
            write!(f, " {}", self.0.reason)?;
        }
        if matches!(self.0.status, 200..=299 | 404 | 405) {
            // Mostly a wrong base URL.
            write!(f, " from {}", self.0.address)?;
        }
        let parts = [
            ("type", identifier(self.kind())),
            ("code", identifier(self.code())),
            ("request", identifier(self.request_id())),
        ];
        let mut open = " (";
        for (name, value) in parts {
            if let Some(value) = value {
                write!(f, "{open}{name} {value}")?;
                open = ", ";
            }
        }
        if open == ", " {
            f.write_str(")")?;
        }
        if matches!(self.0.status, 300..=399) {
            // The key and the prompt would go where the server points.
            f.write_str("; redirects are not followed")?;
        }
        if let Some(wait) = self.excessive_wait() {
            let (wait, most) = (rounded_up(wait), rounded_up(MAX_RETRY_AFTER));
            write!(
                f,
                "; the server asks to wait {wait} s, longer than the limit of {most} s"
            )?;
        }
        Ok(())
    }
}

/// In seconds; a fraction counts as one.
fn rounded_up(wait: Duration) -> u64 {
    wait.as_secs()
        .saturating_add(u64::from(wait.subsec_nanos() > 0))
}

impl fmt::Debug for StatusError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StatusError({self})")
    }
}

impl std::error::Error for StatusError {}
