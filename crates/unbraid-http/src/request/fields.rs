//! The usual fields by name.

use serde_json::Value;

use super::{Kind, Request};

impl Request {
    /// How many choices to make. The stream is told, too: with 1 it reads every index as 0 (E12), with more it warns of a
    /// further one (E29).
    #[must_use]
    pub fn n(self, n: u32) -> Self {
        self.field("n", n)
    }

    /// The sampling temperature.
    #[must_use]
    pub fn temperature(self, temperature: f64) -> Self {
        self.field("temperature", temperature)
    }

    /// The mass of probability that is sampled from.
    #[must_use]
    pub fn top_p(self, top_p: f64) -> Self {
        self.field("top_p", top_p)
    }

    /// The most tokens of each choice, under the name that most servers know.
    #[must_use]
    pub fn max_tokens(self, tokens: u32) -> Self {
        self.field("max_tokens", tokens)
    }

    /// The most tokens of each choice, reasoning included, under the newer name.
    #[must_use]
    pub fn max_completion_tokens(self, tokens: u32) -> Self {
        self.field("max_completion_tokens", tokens)
    }

    /// How much tokens that came already are avoided, each time more.
    #[must_use]
    pub fn frequency_penalty(self, penalty: f64) -> Self {
        self.field("frequency_penalty", penalty)
    }

    /// How much tokens that came already are avoided, once.
    #[must_use]
    pub fn presence_penalty(self, penalty: f64) -> Self {
        self.field("presence_penalty", penalty)
    }

    /// The log probabilities of each token, and of so many others in its place.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_http::Request;
    ///
    /// let chat = Request::chat("m").logprobs(3).body();
    /// assert_eq!((&chat["logprobs"], &chat["top_logprobs"]), (&true.into(), &3.into()));
    /// assert_eq!(Request::text("m", "Once").logprobs(3).body()["logprobs"], 3);
    /// ```
    #[must_use]
    pub fn logprobs(self, others: u32) -> Self {
        match self.kind {
            Kind::Chat => self.field("logprobs", true).field("top_logprobs", others),
            Kind::Text => self.field("logprobs", others),
        }
    }

    /// Texts that end a choice.
    #[must_use]
    pub fn stop<S: Into<String>>(self, texts: impl IntoIterator<Item = S>) -> Self {
        let texts: Vec<String> = texts.into_iter().map(Into::into).collect();
        self.field("stop", texts)
    }

    /// The seed of the sampling, where the server has one.
    #[must_use]
    pub fn seed(self, seed: i64) -> Self {
        self.field("seed", seed)
    }

    /// The functions that may be called: the array that the API takes.
    #[must_use]
    pub fn tools(self, tools: impl Into<Value>) -> Self {
        self.field("tools", tools)
    }

    /// Which of them must be called: `"auto"`, `"none"`, `"required"` or an object.
    #[must_use]
    pub fn tool_choice(self, choice: impl Into<Value>) -> Self {
        self.field("tool_choice", choice)
    }

    /// Whether one choice may call several functions at once.
    #[must_use]
    pub fn parallel_tool_calls(self, parallel: bool) -> Self {
        self.field("parallel_tool_calls", parallel)
    }

    /// The format of the answer: JSON, or a schema of it.
    #[must_use]
    pub fn response_format(self, format: impl Into<Value>) -> Self {
        self.field("response_format", format)
    }

    /// How hard to think: `"low"`, `"medium"`, `"high"`, or what the model knows.
    #[must_use]
    pub fn reasoning_effort(self, effort: impl Into<String>) -> Self {
        self.field("reasoning_effort", effort.into())
    }
}
