//! Clients for the interfaces of other providers.

use super::{Client, ClientBuilder};
use crate::provider::Provider;

impl Client {
    /// Returns a builder for the interface of a provider: its address, its headers and its form of requests.
    ///
    /// A [`Request`](crate::Request) for a chat completion is [translated](crate::Request::body_for); the provider's own JSON is
    /// [`Request::native`](crate::Request::native). Without [`api_key`](ClientBuilder::api_key) or
    /// [`env`](ClientBuilder::env) no key is sent.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use unbraid_http::{Client, Provider, Request};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let provider: Provider = std::env::args().nth(1).unwrap_or_default().parse()?;
    /// let client = Client::builder_for(provider).env().build()?;
    /// let request = Request::chat("a model of it").user("Name a prime number.");
    /// println!("{}", client.send(&request).await?.first().await?.text().await?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn builder_for(provider: Provider) -> ClientBuilder {
        ClientBuilder::for_provider(provider)
    }

    /// Returns a builder for the Responses API of OpenAI, `/v1/responses`, which other servers offer as well.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_http::Client;
    ///
    /// let client = Client::responses().api_key("a key").build()?;
    /// # drop(client);
    /// # Ok::<(), unbraid_http::BuildError>(())
    /// ```
    pub fn responses() -> ClientBuilder {
        Self::builder_for(Provider::Responses)
    }

    /// Returns a builder for the Messages API of Anthropic, `/v1/messages`. The key is sent in the header `x-api-key`, beside
    /// `anthropic-version: 2023-06-01`.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_http::Client;
    ///
    /// let client = Client::anthropic().api_key("a key").header("anthropic-beta", "context-1m-2025-08-07").build()?;
    /// # drop(client);
    /// # Ok::<(), unbraid_http::BuildError>(())
    /// ```
    pub fn anthropic() -> ClientBuilder {
        Self::builder_for(Provider::Anthropic)
    }

    /// Returns a builder for Gemini, `/v1beta/models/{model}:streamGenerateContent?alt=sse`. The key is sent in the header
    /// `x-goog-api-key`.
    ///
    /// A base URL that contains a version is used as it is. So Vertex AI is a base URL that ends in `publishers/google`, with a
    /// bearer token in the header `authorization`.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_http::Client;
    ///
    /// let client = Client::gemini().api_key("a key").build()?;
    /// let vertex = Client::gemini()
    ///     .base_url("https://aiplatform.googleapis.com/v1/projects/p/locations/global/publishers/google")
    ///     .header("authorization", "Bearer a-token")
    ///     .build()?;
    /// # drop((client, vertex));
    /// # Ok::<(), unbraid_http::BuildError>(())
    /// ```
    pub fn gemini() -> ClientBuilder {
        Self::builder_for(Provider::Gemini)
    }

    /// Returns a builder for Ollama, `/api/chat`, at `http://localhost:11434` and without a key unless others are set.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_http::Client;
    ///
    /// let client = Client::ollama().build()?;
    /// # drop(client);
    /// # Ok::<(), unbraid_http::BuildError>(())
    /// ```
    pub fn ollama() -> ClientBuilder {
        Self::builder_for(Provider::Ollama)
    }

    /// Returns a builder for the second version of Cohere's API, `/v2/chat`.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_http::Client;
    ///
    /// let client = Client::cohere().api_key("a key").build()?;
    /// # drop(client);
    /// # Ok::<(), unbraid_http::BuildError>(())
    /// ```
    pub fn cohere() -> ClientBuilder {
        Self::builder_for(Provider::Cohere)
    }
}
