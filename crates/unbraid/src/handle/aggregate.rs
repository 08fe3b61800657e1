//! The response that the server would have sent without streaming.

use serde_json::Value;

use super::completions::Completions;
use crate::state::choice_log::ChoiceLog;

impl Completions {
    /// Waits until the stream is over and returns the response that the server would have sent without streaming.
    ///
    /// It never fails: the response holds whatever arrived. See [`aggregate`](crate::aggregate()) for its shape.
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe: dropping the future loses nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// # use futures::stream;
    /// use unbraid::Completions;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// # let body = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    /// # let bytes = stream::iter([Ok::<_, std::io::Error>(body)]);
    /// let response = Completions::from_byte_stream(bytes).aggregate().await;
    /// assert_eq!(response["object"], "chat.completion");
    /// assert_eq!(response["choices"][0]["message"]["content"], "Hi");
    /// # }
    /// ```
    pub async fn aggregate(&self) -> Value {
        let _closed = self.closed().await;
        self.snapshot()
    }

    /// The same response as of now, while the stream goes on: what has arrived of each choice so far.
    ///
    /// It never waits. The usage is part of it once the stream has closed. Each choice is read on its own, so the choices of
    /// one snapshot may differ by a few deltas. It costs a copy of everything that has arrived: to follow one choice, its
    /// streams are cheaper.
    ///
    /// # Examples
    ///
    /// ```
    /// # use futures::{StreamExt, stream};
    /// use unbraid::Completions;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let body = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Once upon\"}}]}\n\n";
    /// # let bytes = stream::iter([Ok::<_, std::io::Error>(body)]).chain(stream::pending());
    /// let completions = Completions::from_byte_stream(bytes); // a stream that goes on
    /// completions.first().await?;
    /// let response = completions.snapshot();
    /// assert_eq!(response["choices"][0]["message"]["content"], "Once upon");
    /// assert!(response["choices"][0]["finish_reason"].is_null());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn snapshot(&self) -> Value {
        let (logs, metadata, usage) = self.completion.read(|state| {
            let usage = state.usage();
            (state.choices.clone(), state.metadata(), usage)
        });
        // No lock is held while a response is made of a long choice: the reader would wait for it, and with it all choices.
        let one_choice =
            |log: &ChoiceLog| unbraid_core::aggregate(&metadata, &usage, [&*log.snapshot()]);
        let responses = logs.iter().map(one_choice).collect();
        merge(responses).unwrap_or_else(|| unbraid_core::aggregate(&metadata, &usage, []))
    }

    /// As [`aggregate`](Self::aggregate), as JSON text that keeps everything the server sent of its own accord (usage, log
    /// probabilities, unknown fields) digit by digit.
    ///
    /// A [`Value`] has no room for some numbers; see [`aggregate_json`](crate::aggregate_json()).
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe: dropping the future loses nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// # use futures::stream;
    /// use unbraid::Completions;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// # let body = "data: {\"choices\":[{\"index\":0,\"delta\":{}}],\"request\":12345678901234567890123}\n\ndata: [DONE]\n\n";
    /// # let bytes = stream::iter([Ok::<_, std::io::Error>(body)]);
    /// let response = Completions::from_byte_stream(bytes).aggregate_json().await;
    /// assert!(response.ends_with(r#","request":12345678901234567890123}"#));
    /// # }
    /// ```
    pub async fn aggregate_json(&self) -> String {
        let _closed = self.closed().await;
        aggregate_json_with(self, &[])
    }
}

/// The response as JSON text as of now, followed by `more` fields of JSON text, which replace unknown fields of the same names.
#[doc(hidden)]
#[must_use]
pub fn aggregate_json_with(completions: &Completions, more: &[(&str, &str)]) -> String {
    let (logs, metadata, usage) = completions.completion.read(|state| {
        let usage = state.usage();
        (state.choices.clone(), state.metadata(), usage)
    });
    let one_choice = |log: &ChoiceLog| {
        let choice = log.snapshot();
        (choice.index(), unbraid_core::internal::choice_json(&choice))
    };
    let mut choices: Vec<_> = logs.iter().map(one_choice).collect();
    choices.sort_by_key(|(index, _)| *index);
    let choices = choices.into_iter().map(|(_, choice)| choice).collect();
    unbraid_core::internal::aggregate_of(&metadata, &usage, choices, more)
}

/// Merges the responses of single choices into one.
fn merge(responses: Vec<Value>) -> Option<Value> {
    let mut responses = responses.into_iter();
    let mut merged = responses.next()?;
    let choices = merged.get_mut("choices")?.as_array_mut()?;
    for mut response in responses {
        if let Some(more) = response.get_mut("choices").and_then(Value::as_array_mut) {
            choices.append(more);
        }
    }
    choices.sort_by_key(|choice| choice.get("index").and_then(Value::as_u64));
    Some(merged)
}
