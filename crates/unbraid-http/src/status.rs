//! A response that is not a stream of completions: its status, and what the provider says about it.

mod error_body;
mod head;

use std::{fmt, sync::Arc, time::Duration};

pub(crate) use self::error_body::ErrorBody;
pub(crate) use self::head::{Head, forbids_retry, retry_after};
use crate::{host::host_and_port, limits::MAX_RETRY_AFTER, secrets::Secrets};

/// A response that contains no completions: its status is not a success, or it is a web page.
///
/// `Display` and `Debug` print the status, the path if it was not found, and the provider's type, code and request id if these
/// are plain identifiers. They print the wait that the server asks for if it is too long for another attempt. The provider's
/// message and body may contain parts of the prompt, so only [`message`](Self::message) and [`body_head`](Self::body_head)
/// return them. In all of them the client's secrets are replaced by `[key]`, however they are escaped: its key, the values of
/// additional headers, the query values of its address, and what looks like a key in its path.
///
/// # Examples
///
/// ```no_run
/// use unbraid_http::{Client, HttpError, Request};
///
/// # async fn f(client: Client, request: Request) -> Result<(), HttpError> {
/// match client.send(&request).await {
///     Err(HttpError::Status(status)) if status.status() == 429 => {
///         eprintln!("{status}; retry in {:?}", status.retry_after());
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
    forbids_retry: bool,
    body_head: String,
    body: ErrorBody,
    attempts: u32,
}

/// Whether a failure of the server is llama.cpp's refusal of several choices, which it reports as an exception. Another attempt
/// gets the same one.
pub(crate) fn is_exception_of_n(status: u16, message: &str) -> bool {
    status == 500 && message.contains("one completion choice is allowed")
}

impl StatusError {
    /// `body_head` is the bounded beginning of the body, before secrets are replaced.
    pub(crate) fn new(head: &Head, body_head: &str, secrets: &Secrets, attempts: u32) -> Self {
        let mut secrets = secrets.clone();
        // The address of a caller's own client is known only from the response.
        secrets.add_url_without_path(&head.url);
        let body_head = secrets.redact(body_head);
        let body = ErrorBody::parse(&body_head).redacted(&secrets);
        let address = format!("{}{}", host_and_port(&head.url), head.url.path());
        Self(Arc::new(Inner {
            status: head.status.as_u16(),
            reason: head.status.canonical_reason().unwrap_or_default(),
            address: secrets.redact(&address),
            request_id: head
                .request_id()
                .map(|id| secrets.redact(id))
                .or_else(|| body.request_id.clone()),
            retry_after: head.retry_after().or(body.retry_after),
            forbids_retry: head.forbids_retry(),
            body,
            body_head,
            attempts,
        }))
    }

    /// Returns the status code, such as 429.
    ///
    /// # Examples
    ///
    /// ```
    /// # use unbraid_http::ResponseExt;
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// let response = hyper::Response::builder().status(404).body("no such model").unwrap();
    /// let error = reqwest::Response::from(response).into_completions().await.unwrap_err();
    /// assert_eq!(error.status_error().unwrap().status(), 404);
    /// # }
    /// ```
    #[must_use]
    pub fn status(&self) -> u16 {
        self.0.status
    }

    /// Returns host, port and path of the address that the request was sent to, without its query. A segment of the path that
    /// looks like a key is replaced by `[key]`.
    ///
    /// # Examples
    ///
    /// ```
    /// # use unbraid_http::StatusError;
    /// fn report(error: &StatusError) {
    ///     eprintln!("{} responded with {}", error.address(), error.status());
    /// }
    /// ```
    #[must_use]
    pub fn address(&self) -> &str {
        &self.0.address
    }

    /// Returns the provider's id of the request, which its support asks for.
    ///
    /// # Examples
    ///
    /// ```
    /// # use unbraid_http::ResponseExt;
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// let response = hyper::Response::builder().status(500).header("x-request-id", "req_1").body("").unwrap();
    /// let error = reqwest::Response::from(response).into_completions().await.unwrap_err();
    /// assert_eq!(error.status_error().unwrap().request_id(), Some("req_1"));
    /// # }
    /// ```
    #[must_use]
    pub fn request_id(&self) -> Option<&str> {
        self.0.request_id.as_deref()
    }

    /// Returns how long the server asks to wait before another attempt, counted from its response: by the headers
    /// `retry-after-ms` and `retry-after`, or the `retryDelay` of Google's error.
    ///
    /// # Examples
    ///
    /// ```
    /// # use unbraid_http::ResponseExt;
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// let response = hyper::Response::builder().status(429).header("retry-after", "7").body("").unwrap();
    /// let error = reqwest::Response::from(response).into_completions().await.unwrap_err();
    /// assert_eq!(error.status_error().unwrap().retry_after().unwrap().as_secs(), 7);
    /// # }
    /// ```
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }

    /// Returns the provider's message: that of an error object, the title of a page, or the text of the body.
    ///
    /// # Examples
    ///
    /// ```
    /// # use unbraid_http::ResponseExt;
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// let body = r#"{"error":{"message":"unknown model"}}"#;
    /// let response = hyper::Response::builder().status(404).body(body).unwrap();
    /// let error = reqwest::Response::from(response).into_completions().await.unwrap_err();
    /// assert_eq!(error.status_error().unwrap().message(), Some("unknown model"));
    /// # }
    /// ```
    #[must_use]
    pub fn message(&self) -> Option<&str> {
        self.0.body.message.as_deref()
    }

    /// Returns the provider's type of error; that of Google is its `status`, such as `RESOURCE_EXHAUSTED`.
    ///
    /// # Examples
    ///
    /// ```
    /// # use unbraid_http::ResponseExt;
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// let body = r#"{"error":{"message":"no","type":"invalid_request_error"}}"#;
    /// let response = hyper::Response::builder().status(400).body(body).unwrap();
    /// let error = reqwest::Response::from(response).into_completions().await.unwrap_err();
    /// assert_eq!(error.status_error().unwrap().kind(), Some("invalid_request_error"));
    /// # }
    /// ```
    #[must_use]
    pub fn kind(&self) -> Option<&str> {
        self.0.body.kind.as_deref()
    }

    /// Returns the provider's code as text, whether it is a number or a word.
    ///
    /// # Examples
    ///
    /// ```
    /// # use unbraid_http::ResponseExt;
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// let body = r#"{"error":{"message":"no","code":"model_not_found"}}"#;
    /// let response = hyper::Response::builder().status(400).body(body).unwrap();
    /// let error = reqwest::Response::from(response).into_completions().await.unwrap_err();
    /// assert_eq!(error.status_error().unwrap().code(), Some("model_not_found"));
    /// # }
    /// ```
    #[must_use]
    pub fn code(&self) -> Option<&str> {
        self.0.body.code.as_deref()
    }

    /// Returns the parameter that is at fault, if the provider names one.
    ///
    /// # Examples
    ///
    /// ```
    /// # use unbraid_http::ResponseExt;
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// let body = r#"{"error":{"message":"no","param":"model"}}"#;
    /// let response = hyper::Response::builder().status(400).body(body).unwrap();
    /// let error = reqwest::Response::from(response).into_completions().await.unwrap_err();
    /// assert_eq!(error.status_error().unwrap().param(), Some("model"));
    /// # }
    /// ```
    #[must_use]
    pub fn param(&self) -> Option<&str> {
        self.0.body.param.as_deref()
    }

    /// Returns the first [`MAX_ERROR_BODY_BYTES`](crate::limits::MAX_ERROR_BODY_BYTES) of the body, as text.
    ///
    /// # Examples
    ///
    /// ```
    /// # use unbraid_http::ResponseExt;
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// let response = hyper::Response::builder().status(503).body("all slots are busy").unwrap();
    /// let error = reqwest::Response::from(response).into_completions().await.unwrap_err();
    /// assert_eq!(error.status_error().unwrap().body_head(), "all slots are busy");
    /// # }
    /// ```
    #[must_use]
    pub fn body_head(&self) -> &str {
        &self.0.body_head
    }

    /// Returns how many attempts were made, including the last one.
    ///
    /// # Examples
    ///
    /// ```
    /// # use unbraid_http::ResponseExt;
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// let response = hyper::Response::builder().status(503).body("").unwrap();
    /// let error = reqwest::Response::from(response).into_completions().await.unwrap_err();
    /// assert_eq!(error.status_error().unwrap().attempts(), 1);
    /// # }
    /// ```
    #[must_use]
    pub fn attempts(&self) -> u32 {
        self.0.attempts
    }

    /// Whether another attempt may get a different response.
    pub(crate) fn is_retryable(&self) -> bool {
        matches!(self.0.status, 408 | 409 | 429 | 500..=599)
            && !self.0.forbids_retry
            && !self.refuses_n()
    }

    fn refuses_n(&self) -> bool {
        let message = self.message().unwrap_or_default();
        is_exception_of_n(self.0.status, message)
    }

    /// The wait that the server asks for, if it is the reason why no further attempt is made.
    fn excessive_wait(&self) -> Option<Duration> {
        let wait = self.retry_after()?;
        (self.is_retryable() && wait > MAX_RETRY_AFTER).then_some(wait)
    }
}

/// Returns the text if it is a plain identifier, so that no payload reaches a log.
fn identifier(text: Option<&str>) -> Option<&str> {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
    text.filter(|text| !text.is_empty() && text.len() <= 64 && text.bytes().all(allowed))
}

impl fmt::Display for StatusError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "status {}", self.0.status)?;
        if !self.0.reason.is_empty() {
            write!(f, " {}", self.0.reason)?;
        }
        if matches!(self.0.status, 200..=299 | 404 | 405) {
            // The cause is usually a wrong base URL.
            write!(f, " from {}", self.0.address)?;
        }
        let parts = [
            ("type", identifier(self.kind())),
            ("code", identifier(self.code())),
            ("request", identifier(self.request_id())),
        ];
        let mut separator = " (";
        for (name, value) in parts {
            if let Some(value) = value {
                write!(f, "{separator}{name} {value}")?;
                separator = ", ";
            }
        }
        if separator == ", " {
            f.write_str(")")?;
        }
        if matches!(self.0.status, 300..=399) {
            // The key and the prompt would be sent to another host.
            f.write_str("; redirects are not followed")?;
        }
        if let Some(wait) = self.excessive_wait() {
            let (wait, limit) = (
                seconds_rounded_up(wait),
                seconds_rounded_up(MAX_RETRY_AFTER),
            );
            write!(
                f,
                "; the server asks to wait {wait} s, longer than the limit of {limit} s"
            )?;
        }
        Ok(())
    }
}

fn seconds_rounded_up(wait: Duration) -> u64 {
    wait.as_secs()
        .saturating_add(u64::from(wait.subsec_nanos() > 0))
}

impl fmt::Debug for StatusError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StatusError({self})")
    }
}

impl std::error::Error for StatusError {}
