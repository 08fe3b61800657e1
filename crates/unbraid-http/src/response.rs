//! From an answer to completions.

use bytes::Bytes;
use futures::{StreamExt, stream};
use reqwest::{
    Response,
    header::{CONTENT_TYPE, HeaderMap},
};
use tokio::time::timeout;
use unbraid::{BoxError, Completions, CompletionsBuilder, TimedOut};

use crate::{
    body::{FirstByte, Incoming, incoming},
    error::HttpError,
    limits::{MAX_ERROR_BODY_BYTES, MAX_ERROR_BODY_TIME},
    secrets::Secrets,
    status::{Head, StatusError},
};

/// Completions out of an answer that a client of your own got.
///
/// A body of hyper, or an `AsyncRead`, needs none of this: give it to
/// [`Completions::from_byte_stream`](unbraid::Completions::from_byte_stream) or [`from_reader`](unbraid::Completions::from_reader).
///
/// # Examples
///
/// ```no_run
/// use unbraid_http::ResponseExt;
///
/// # async fn f(client: reqwest::Client, body: String) -> Result<(), Box<dyn std::error::Error>> {
/// let response = client.post("https://example.com/v1/chat/completions").body(body).send().await?;
/// let completions = response.into_completions().await?;
/// println!("{}", completions.first().await?.text().await?);
/// # Ok(())
/// # }
/// ```
pub trait ResponseExt: Sized {
    /// Reads the body as a stream of completions, with the default settings.
    ///
    /// In errors that the server reports, the values of the address's query are replaced by `[key]`, and its user and password.
    /// Of the headers that the client sent nothing is known here: [`CompletionsBuilder::redact`] hides a key that stood in one.
    ///
    /// # Errors
    ///
    /// [`HttpError::Status`] if the status is no success; the error's body is read first. [`HttpError::UnexpectedHtml`] if it is one, but
    /// the body is a web page.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the answer.
    fn into_completions(self) -> impl Future<Output = Result<Completions, HttpError>> + Send {
        self.into_completions_with(Completions::builder())
    }

    /// The same with settings: timeouts, limits, how many choices were asked for.
    ///
    /// # Errors
    ///
    /// As [`into_completions`](Self::into_completions).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the answer.
    fn into_completions_with(
        self,
        settings: CompletionsBuilder,
    ) -> impl Future<Output = Result<Completions, HttpError>> + Send;
}

impl ResponseExt for Response {
    async fn into_completions_with(
        self,
        settings: CompletionsBuilder,
    ) -> Result<Completions, HttpError> {
        let mut secrets = Secrets::default();
        secrets.add_url(self.url()); // all that is known of what the client sent
        let settings = settings.redact(secrets.redaction());
        Ok(Answer::of(self, &secrets, 1).await?.read(settings))
    }
}

/// A success whose body may be completions.
pub(crate) struct Answer {
    /// What was read of it to find out.
    head: Vec<Result<Bytes, BoxError>>,
    rest: Incoming,
    /// How long the first byte of the body may take.
    first_byte: Option<TimedOut>,
}

impl Answer {
    /// Sorts an answer: a success, or what it says instead.
    ///
    /// The content type decides nothing alone. The core tells events from one whole JSON answer by their bytes, and there are
    /// servers that call a stream `text/html`, since their framework calls everything so. But what is called a page and
    /// begins with `<` is one.
    pub(crate) async fn of(
        response: Response,
        secrets: &Secrets,
        attempt: u32,
    ) -> Result<Self, HttpError> {
        let for_response = Head::of(&response);
        let mut rest = incoming(response);
        if !for_response.status.is_success() {
            let refused = StatusError::read(for_response, Vec::new(), rest, secrets, attempt).await;
            return Err(HttpError::Status(refused));
        }
        let mut head = Vec::new();
        if is_called_page(&for_response.headers) {
            let mut begun = Vec::new();
            // A body that has not begun by then is passed on: the timeouts of the stream still apply.
            let ended = timeout(MAX_ERROR_BODY_TIME, begin(&mut rest, &mut begun));
            let ended = ended.await.unwrap_or(None);
            if first_letter(&begun) == Some(b'<') {
                let page = StatusError::read(for_response, begun, rest, secrets, attempt).await;
                return Err(HttpError::UnexpectedHtml(page));
            }
            if ended.is_some() {
                rest = stream::empty().boxed();
            }
            head = [Ok(Bytes::from(begun))].into_iter().chain(ended).collect();
        }
        Ok(Self {
            head,
            rest,
            first_byte: None,
        })
    }

    pub(crate) fn with_first_byte(self, wait: TimedOut) -> Self {
        Self {
            first_byte: Some(wait),
            ..self
        }
    }

    pub(crate) fn read(self, settings: CompletionsBuilder) -> Completions {
        settings.from_byte_stream(self.body())
    }

    pub(crate) fn body(self) -> FirstByte {
        let bytes = stream::iter(self.head).chain(self.rest);
        FirstByte::new(bytes.boxed(), self.first_byte)
    }
}

/// Reads until the first letter has come, or the end, which it gives.
async fn begin(bytes: &mut Incoming, head: &mut Vec<u8>) -> Option<Result<Bytes, BoxError>> {
    while first_letter(head).is_none() && head.len() < MAX_ERROR_BODY_BYTES {
        match bytes.next().await {
            Some(Ok(chunk)) => head.extend_from_slice(&chunk),
            Some(Err(error)) => return Some(Err(error)),
            None => return Some(Ok(Bytes::new())),
        }
    }
    None
}

fn is_called_page(headers: &HeaderMap) -> bool {
    let html = |kind: &str| {
        let kind = kind.split(';').next().unwrap_or_default().trim();
        kind.eq_ignore_ascii_case("text/html")
    };
    let kind = headers.get(CONTENT_TYPE);
    kind.and_then(|kind| kind.to_str().ok()).is_some_and(html)
}

fn first_letter(head: &[u8]) -> Option<u8> {
    let head = head.strip_prefix("\u{feff}".as_bytes()).unwrap_or(head);
    head.iter()
        .copied()
        .find(|byte| !byte.is_ascii_whitespace())
}
