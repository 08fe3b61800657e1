//! How several choices are requested.

/// How several choices are requested; see [`Request::choice_strategy`](crate::Request::choice_strategy).
///
/// # Examples
///
/// ```
/// use unbraid_http::{ChoiceStrategy, Request};
///
/// let request = Request::chat("a model").user("Hello?").n(4);
/// let by_four_requests = request.choice_strategy(ChoiceStrategy::FanOut);
/// assert_eq!(ChoiceStrategy::default(), ChoiceStrategy::Native);
/// # drop(by_four_requests);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ChoiceStrategy {
    /// One request with `n`. The prompt is billed once, and the provider has to support `n`. Where its interface has no such
    /// field, as that of Anthropic, several choices are an error before anything is sent.
    #[default]
    Native,
    /// One request for each choice, as [`Client::fan_out`](crate::Client::fan_out) sends them. Any provider supports this, and
    /// the prompt is billed for each choice.
    FanOut,
    /// One request with `n` if the provider returns that many choices, else further requests. Where the interface has no `n`
    /// this is [`FanOut`](Self::FanOut).
    ///
    /// The first request has `n`. If the provider refuses it, every choice is requested on its own. If the provider ignores
    /// `n`, so that its response ends with one choice, the missing ones are requested then. The client remembers either for
    /// the model, and sends no further request with `n` to it. A refusal is not remembered if it names a maximum below `n`, or
    /// if the single requests are refused as well.
    Auto,
}
