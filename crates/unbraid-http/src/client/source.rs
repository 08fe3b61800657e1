//! A request as one of several sources of a completion.

use futures::{TryStreamExt, stream};
use unbraid::{BoxError, Redact, Source};

use super::Client;
use crate::request::Request;

impl Client {
    /// Returns a request as a source for [`Completions::merge`](unbraid::Completions::merge): several providers then answer
    /// as the choices of one completion.
    ///
    /// The request is sent when the merge begins to read, with the retries of this client. If it fails, its choices end with
    /// the [`HttpError`](crate::HttpError) as their cause ([`HttpError::find_in`](crate::HttpError::find_in)), and those of the
    /// other sources go on. Dropping the source, or cancelling its choices, closes the connection.
    ///
    /// The dialect is recognized by the response, because a gateway may answer in another one than that of its address;
    /// [`Source::dialect`] sets it. The source has as many choices as the request asks for in one response: `n`, or the
    /// `candidateCount` of Gemini, for each prompt. It is always one
    /// request: the [`ChoiceStrategy`](crate::ChoiceStrategy) is ignored. The timeouts of this client hold for this source alone, and
    /// the total one begins when the request is sent. Those of the merge hold for it as a whole; those of the client's
    /// [`stream_config`](crate::ClientBuilder::stream_config) are not used.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use unbraid::Completions;
    /// use unbraid_http::{Client, Request};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let ask = |model: &str| Request::chat(model).user("Is 221 a prime number? Answer yes or no.");
    /// let jury = Completions::merge([
    ///     Client::from_env()?.source(ask("gpt-5-mini")),
    ///     Client::anthropic().env().build()?.source(ask("claude-sonnet-4-5")),
    ///     Client::gemini().env().build()?.source(ask("gemini-2.5-flash")),
    /// ]);
    /// for answer in jury.first_finished(2).await {
    ///     let provider = jury.choice_metadata(answer.choice).and_then(|metadata| metadata.dialect());
    ///     println!("{provider:?}: {}", answer.message.content);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn source(&self, request: Request) -> Source {
        let client = self.clone();
        let provider = self.0.sender.provider();
        let choices = request.expected_choices(provider).unwrap_or(1);
        let body = async move {
            let opened = client.open(&request).await;
            opened.map_err(BoxError::from)
        };
        let source = Source::from_byte_stream(stream::once(body).try_flatten());
        source.expect_choices(choices).redact(self.redact())
    }

    /// Returns the function that replaces this client's secrets in text, for errors that are reported elsewhere.
    ///
    /// [`source`](Self::source) and [`send`](Self::send) contain it already.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid::{Completions, Redact};
    /// use unbraid_http::Client;
    ///
    /// let client = Client::builder().api_key("sk-1234567890").build()?;
    /// let redact: Redact = client.redact();
    /// let builder = Completions::builder().redact(redact);
    /// # drop(builder);
    /// # Ok::<(), unbraid_http::BuildError>(())
    /// ```
    #[must_use]
    pub fn redact(&self) -> Redact {
        self.0.sender.secrets.redaction()
    }
}
