//! Completions from the response of a caller's own client.

use reqwest::Response;
use unbraid::{Completions, CompletionsBuilder, internal::expected_dialect};

use super::{CheckedResponse, dialect_of};
use crate::{error::HttpError, secrets::Secrets};

mod sealed {
    /// Prevents implementations in other crates, so that methods can be added.
    #[expect(
        unnameable_types,
        reason = "nothing outside of this module may implement it"
    )]
    pub trait Sealed {}

    impl Sealed for reqwest::Response {}
}

/// Reads the response of your own `reqwest` client as completions.
///
/// A body of hyper, or an `AsyncRead`, does not need this trait: pass it to
/// [`Completions::from_byte_stream`](unbraid::Completions::from_byte_stream) or
/// [`Completions::from_reader`](unbraid::Completions::from_reader).
///
/// This trait is sealed: it is implemented for [`reqwest::Response`] only.
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
pub trait ResponseExt: sealed::Sealed + Sized {
    /// Reads the body as a stream of completions, with the default configuration.
    ///
    /// In errors that the server reports, the user, the password and the query values of the response's address are replaced by
    /// `[key]`. The headers that the client sent are not known here: use [`CompletionsBuilder::redact`] to replace a key that
    /// one of them contained.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_http::ResponseExt;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), unbraid_http::Error> {
    /// let body = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\n";
    /// let response = reqwest::Response::from(hyper::Response::new(body)); // as your client returns it
    /// let completions = response.into_completions().await?;
    /// assert_eq!(completions.first().await?.text().await?, "Hi");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`HttpError::Status`] if the status is not a success; the body of the error is read first.
    /// [`HttpError::UnexpectedHtml`] if the status is a success, but the body is a web page.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the response, which closes its connection.
    fn into_completions(self) -> impl Future<Output = Result<Completions, HttpError>> + Send {
        self.into_completions_with(Completions::builder())
    }

    /// Does the same with a configuration: timeouts, limits, or how many choices were requested.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid::Completions;
    /// use unbraid_http::ResponseExt;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), unbraid_http::Error> {
    /// // This server counts tokens in `index`.
    /// let body = "data: {\"choices\":[{\"index\":7,\"text\":\"Hi\",\"finish_reason\":\"stop\"}]}\n\n";
    /// let response = reqwest::Response::from(hyper::Response::new(body));
    /// let config = Completions::builder().expect_choices(1);
    /// let completions = response.into_completions_with(config).await?;
    /// assert_eq!(completions.first().await?.index().0, 0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`into_completions`](Self::into_completions).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the response, which closes its connection.
    fn into_completions_with(
        self,
        config: CompletionsBuilder,
    ) -> impl Future<Output = Result<Completions, HttpError>> + Send;
}

impl ResponseExt for Response {
    async fn into_completions_with(
        self,
        config: CompletionsBuilder,
    ) -> Result<Completions, HttpError> {
        let mut secrets = Secrets::default();
        secrets.add_url(self.url()); // the only part of the request that is known
        let config = config.redact(secrets.redaction());
        let config = expected_dialect(config, dialect_of(self.headers()));
        let response = CheckedResponse::new(self, &secrets, 1).await?;
        Ok(config.from_byte_stream(response.into_bytes(None)))
    }
}
