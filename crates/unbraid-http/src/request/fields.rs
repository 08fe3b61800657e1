//! Setters for the usual fields.

use serde_json::Value;

use super::{Kind, Request};

impl Request {
    /// Sets how many choices to generate.
    ///
    /// The stream is read accordingly: with 1 every index is read as 0, for servers that count tokens in `index`; with more,
    /// a further choice causes a warning.
    ///
    /// # Examples
    ///
    /// ```
    /// let request = unbraid_http::Request::chat("m").user("Name a color.").n(4);
    /// assert_eq!(request.body()["n"], 4);
    /// ```
    #[must_use]
    pub fn n(self, n: u32) -> Self {
        self.field("n", n)
    }

    /// Sets the sampling temperature.
    ///
    /// # Examples
    ///
    /// ```
    /// assert_eq!(unbraid_http::Request::chat("m").temperature(0.7).body()["temperature"], 0.7);
    /// ```
    #[must_use]
    pub fn temperature(self, temperature: f64) -> Self {
        self.field("temperature", temperature)
    }

    /// Sets the probability mass that is sampled from.
    ///
    /// # Examples
    ///
    /// ```
    /// assert_eq!(unbraid_http::Request::chat("m").top_p(0.9).body()["top_p"], 0.9);
    /// ```
    #[must_use]
    pub fn top_p(self, top_p: f64) -> Self {
        self.field("top_p", top_p)
    }

    /// Sets the maximum number of tokens of each choice, under the name that most servers support.
    ///
    /// # Examples
    ///
    /// ```
    /// assert_eq!(unbraid_http::Request::chat("m").max_tokens(64).body()["max_tokens"], 64);
    /// ```
    #[must_use]
    pub fn max_tokens(self, tokens: u32) -> Self {
        self.field("max_tokens", tokens)
    }

    /// Sets the maximum number of tokens of each choice, including reasoning, under the newer name.
    ///
    /// # Examples
    ///
    /// ```
    /// let request = unbraid_http::Request::chat("m").max_completion_tokens(64);
    /// assert_eq!(request.body()["max_completion_tokens"], 64);
    /// ```
    #[must_use]
    pub fn max_completion_tokens(self, tokens: u32) -> Self {
        self.field("max_completion_tokens", tokens)
    }

    /// Sets a penalty for tokens that occurred earlier, which grows with each occurrence.
    ///
    /// # Examples
    ///
    /// ```
    /// assert_eq!(unbraid_http::Request::chat("m").frequency_penalty(0.5).body()["frequency_penalty"], 0.5);
    /// ```
    #[must_use]
    pub fn frequency_penalty(self, penalty: f64) -> Self {
        self.field("frequency_penalty", penalty)
    }

    /// Sets a penalty for tokens that occurred earlier, which does not grow.
    ///
    /// # Examples
    ///
    /// ```
    /// assert_eq!(unbraid_http::Request::chat("m").presence_penalty(0.5).body()["presence_penalty"], 0.5);
    /// ```
    #[must_use]
    pub fn presence_penalty(self, penalty: f64) -> Self {
        self.field("presence_penalty", penalty)
    }

    /// Requests the log probability of each token, and of this many alternatives to it.
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
    pub fn logprobs(self, alternatives: u32) -> Self {
        match self.kind {
            Kind::Chat => self
                .field("logprobs", true)
                .field("top_logprobs", alternatives),
            Kind::Text => self.field("logprobs", alternatives),
        }
    }

    /// Sets the texts that end a choice.
    ///
    /// # Examples
    ///
    /// ```
    /// let request = unbraid_http::Request::chat("m").stop(["END", "\n\n"]);
    /// assert_eq!(request.body()["stop"][0], "END");
    /// ```
    #[must_use]
    pub fn stop<S: Into<String>>(self, texts: impl IntoIterator<Item = S>) -> Self {
        let texts: Vec<String> = texts.into_iter().map(Into::into).collect();
        self.field("stop", texts)
    }

    /// Sets the seed of the sampling, if the server supports one.
    ///
    /// # Examples
    ///
    /// ```
    /// assert_eq!(unbraid_http::Request::chat("m").seed(7).body()["seed"], 7);
    /// ```
    #[must_use]
    pub fn seed(self, seed: i64) -> Self {
        self.field("seed", seed)
    }

    /// Sets the tools that the model may call, as the array that the API takes.
    ///
    /// # Examples
    ///
    /// ```
    /// let tools = serde_json::json!([{ "type": "function", "function": { "name": "get_weather" } }]);
    /// let request = unbraid_http::Request::chat("m").tools(tools);
    /// assert_eq!(request.body()["tools"][0]["function"]["name"], "get_weather");
    /// ```
    #[must_use]
    pub fn tools(self, tools: impl Into<Value>) -> Self {
        self.field("tools", tools)
    }

    /// Sets which tool the model has to call: `"auto"`, `"none"`, `"required"` or an object.
    ///
    /// # Examples
    ///
    /// ```
    /// assert_eq!(unbraid_http::Request::chat("m").tool_choice("required").body()["tool_choice"], "required");
    /// ```
    #[must_use]
    pub fn tool_choice(self, choice: impl Into<Value>) -> Self {
        self.field("tool_choice", choice)
    }

    /// Sets whether one choice may contain several tool calls.
    ///
    /// # Examples
    ///
    /// ```
    /// let request = unbraid_http::Request::chat("m").parallel_tool_calls(false);
    /// assert_eq!(request.body()["parallel_tool_calls"], false);
    /// ```
    #[must_use]
    pub fn parallel_tool_calls(self, parallel: bool) -> Self {
        self.field("parallel_tool_calls", parallel)
    }

    /// Sets the format of the answer: JSON, or a schema that it has to match.
    ///
    /// # Examples
    ///
    /// ```
    /// let format = serde_json::json!({ "type": "json_object" });
    /// let request = unbraid_http::Request::chat("m").response_format(format);
    /// assert_eq!(request.body()["response_format"]["type"], "json_object");
    /// ```
    #[must_use]
    pub fn response_format(self, format: impl Into<Value>) -> Self {
        self.field("response_format", format)
    }

    /// Sets how much the model reasons: `"low"`, `"medium"`, `"high"`, or another value that the model supports.
    ///
    /// # Examples
    ///
    /// ```
    /// assert_eq!(unbraid_http::Request::chat("m").reasoning_effort("low").body()["reasoning_effort"], "low");
    /// ```
    #[must_use]
    pub fn reasoning_effort(self, effort: impl Into<String>) -> Self {
        self.field("reasoning_effort", effort.into())
    }
}
