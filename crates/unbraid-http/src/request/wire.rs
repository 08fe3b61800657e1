//! A request as one provider receives it.

use std::borrow::Cow;

use serde_json::Value;

use super::{Kind, Request, RequestError, requested::Choices, translate};
use crate::provider::Provider;

/// The fields of a body, in their order.
pub(super) type Fields<'r> = Vec<(Cow<'r, str>, Cow<'r, Value>)>;

impl Request {
    /// Creates a request from the JSON that a provider itself expects, which is sent unchanged to the client's provider.
    ///
    /// Two fields are an exception. `stream` is always true, where the provider has such a field. The `model` of Gemini's
    /// requests is part of their address and is not sent in the body. The methods that set fields of chat completions write
    /// these fields here, too; use [`field`](Self::field) for those of the provider.
    ///
    /// Ollama's `/api/generate` is used if there is a `prompt` and no `messages`. A client for OpenAI reads the value as
    /// [`from_value`](Self::from_value) does. A value that is stored and read back with serde is not native any more: pass it
    /// to this function again.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use serde_json::json;
    /// use unbraid_http::{Client, Request};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), unbraid_http::Error> {
    /// let client = Client::anthropic().env().build()?;
    /// let request = Request::native(json!({
    ///     "model": "claude-sonnet-4-5",
    ///     "max_tokens": 1024,
    ///     "thinking": { "type": "enabled", "budget_tokens": 1024 },
    ///     "messages": [{ "role": "user", "content": "Name a prime number." }],
    /// }))?;
    /// println!("{}", client.send(&request).await?.first().await?.text().await?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`RequestError::NotAnObject`] if the value is not an object.
    pub fn native(value: Value) -> Result<Self, RequestError> {
        let mut request = Self::from_value(value)?;
        request.is_native = true;
        Ok(request)
    }

    /// Returns the body as it is sent to a provider: that of a chat completion is translated to the provider's own form,
    /// and that of a [native](Self::native) request stays as it is.
    ///
    /// [The guide](https://github.com/unbraid/unbraid/blob/main/docs/requests.md) lists what each field becomes.
    ///
    /// # Examples
    ///
    /// ```
    /// use serde_json::json;
    /// use unbraid_http::{Provider, Request, RequestError};
    ///
    /// let request = Request::chat("claude-sonnet-4-5").system("Be brief.").user("Hello?").stop(["END"]);
    /// assert_eq!(
    ///     request.body_for(Provider::Anthropic)?,
    ///     json!({
    ///         "model": "claude-sonnet-4-5",
    ///         "max_tokens": 4096, // Anthropic requires it
    ///         "system": "Be brief.",
    ///         "messages": [{ "role": "user", "content": "Hello?" }],
    ///         "stop_sequences": ["END"],
    ///         "stream": true,
    ///     })
    /// );
    ///
    /// let error = request.seed(7).body_for(Provider::Anthropic).unwrap_err();
    /// assert_eq!(error.to_string(), "the field `seed` cannot be sent to anthropic: it has no such field");
    /// # Ok::<(), RequestError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`RequestError::Unsupported`] if the provider has nothing that means the same as a field. No field is left out.
    pub fn body_for(&self, provider: Provider) -> Result<Value, RequestError> {
        let fields = self.wire_fields(provider, Choices::AsRequested)?;
        let owned = fields.into_iter();
        let owned = owned.map(|(name, value)| (name.into_owned(), value.into_owned()));
        Ok(Value::Object(owned.collect()))
    }

    /// The fields that a provider receives.
    pub(super) fn wire_fields(
        &self,
        provider: Provider,
        choices: Choices,
    ) -> Result<Fields<'_>, RequestError> {
        let is_sent = |name: &str| choices == Choices::AsRequested || name != "n";
        let borrowed = |(name, value)| (Cow::Borrowed(name), value);
        if provider == Provider::OpenAi {
            let fields = self.sent_fields().filter(|(name, _)| is_sent(name));
            return Ok(fields.map(borrowed).collect());
        }
        self.check_address(provider)?;
        if self.is_native {
            let fields = self.native_fields(provider);
            return Ok(fields
                .filter(|(name, _)| is_sent(name))
                .map(borrowed)
                .collect());
        }
        let fields = translate::fields(self, provider, choices)?;
        let owned = fields.into_iter();
        Ok(owned
            .map(|(name, value)| (Cow::Owned(name), Cow::Owned(value)))
            .collect())
    }

    /// The fields of a native request, with the one that is set for the caller.
    fn native_fields(&self, provider: Provider) -> impl Iterator<Item = (&str, Cow<'_, Value>)> {
        let has_stream = provider != Provider::Gemini;
        let given = self.fields.iter().filter_map(move |(name, value)| {
            let value = match name.as_str() {
                "model" if provider == Provider::Gemini => return None,
                "stream" if has_stream => Cow::Owned(Value::Bool(true)),
                _ => Cow::Borrowed(value),
            };
            Some((name.as_str(), value))
        });
        let is_missing = has_stream && !self.fields.contains_key("stream");
        let stream = is_missing.then_some(("stream", Cow::Owned(Value::Bool(true))));
        given.chain(stream)
    }

    /// Gemini's address contains the model.
    fn check_address(&self, provider: Provider) -> Result<(), RequestError> {
        if provider == Provider::Gemini && self.model().is_empty() {
            return Err(RequestError::unsupported(
                provider,
                "model",
                "its address contains the model, which is missing",
            ));
        }
        Ok(())
    }

    /// Whether one request to this provider can ask for the `n` choices of this one. The body of a native request is the
    /// caller's, so its `n` only says how many of them to send.
    pub(crate) fn has_n(&self, provider: Provider) -> bool {
        match provider {
            Provider::OpenAi => true,
            _ => provider.has_n() && !self.is_native,
        }
    }

    /// How many choices the answer of a provider has, if that is known: `n` for each prompt.
    pub(crate) fn expected_choices(&self, provider: Provider) -> Option<u32> {
        if !provider.has_n() {
            return Some(1);
        }
        let prompts = u32::try_from(self.prompts().len().max(1)).ok()?;
        let n = match self.requested_n(provider) {
            // Without `n` each prompt has one choice. For a single one nothing is known: the number 1 would read every index as 0.
            None if prompts > 1 => 1,
            n => u32::try_from(n?.as_u64()?).ok()?,
        };
        n.checked_mul(prompts).filter(|expected| *expected > 0)
    }

    /// The number of choices, where the request has it.
    fn requested_n(&self, provider: Provider) -> Option<&Value> {
        let candidates = || self.fields.get("generationConfig")?.get("candidateCount");
        let n = self.fields.get("n");
        let n = match provider {
            Provider::Gemini if self.is_native => candidates(),
            // A field of Gemini in a chat completion.
            Provider::Gemini => n.filter(|n| !n.is_null()).or_else(candidates),
            _ => n,
        };
        n.filter(|n| !n.is_null())
    }

    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }
}
