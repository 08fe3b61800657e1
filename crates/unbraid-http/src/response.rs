//! From an answer to completions.

use futures::TryStreamExt;
use reqwest::Response;
use unbraid::{Builder, Completions};

use crate::{error::HttpError, status::StatusError};

/// Completions out of an answer that a client of your own got.
///
/// A body of hyper, or an `AsyncRead`, needs none of this: give it to
/// [`Completions::from_sse`](unbraid::Completions::from_sse) or [`from_reader`](unbraid::Completions::from_reader).
///
/// # Examples
///
/// ```no_run
/// use unbraid_http::ResponseExt;
///
/// # async fn f(client: reqwest::Client, body: String) -> Result<(), Box<dyn std::error::Error>> {
/// let response = client.post("https://example.com/v1/chat/completions").body(body).send().await?;
/// let completions = response.into_completions().await?;
/// println!("{}", completions.single().await?.text().await?);
/// # Ok(())
/// # }
/// ```
pub trait ResponseExt: Sized {
    /// Reads the body as a stream of completions, with the default settings.
    ///
    /// # Errors
    ///
    /// [`HttpError::Status`] if the status is no success; the error's body is read first.
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
    /// [`HttpError::Status`] if the status is no success; the error's body is read first.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the answer.
    fn into_completions_with(
        self,
        settings: Builder,
    ) -> impl Future<Output = Result<Completions, HttpError>> + Send;
}

impl ResponseExt for Response {
    async fn into_completions_with(self, settings: Builder) -> Result<Completions, HttpError> {
        if !self.status().is_success() {
            return Err(HttpError::Status(StatusError::read(self, None, 1).await));
        }
        Ok(read(self, settings))
    }
}

/// Reads a body whatever its content type: the core tells events from one whole JSON answer by its bytes.
pub(crate) fn read(response: Response, settings: Builder) -> Completions {
    // The address may hold a key, and errors are printed.
    settings.read_sse(response.bytes_stream().map_err(reqwest::Error::without_url))
}
