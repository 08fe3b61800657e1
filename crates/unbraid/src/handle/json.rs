//! JSON that a model writes: the arguments of a call, or the content in JSON mode.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
};

use serde::de::DeserializeOwned;
use serde_json::Value;
use unbraid_core::{
    ChoiceIndex, JsonErrorKind, Text,
    internal::{TextKind, may_continue},
    json::{self, FieldState, Partial, Pointer, Repair},
    parse_json, parse_json_repaired,
};

use super::{
    cursor,
    text::{TextCursor, copy},
};
use crate::{
    control::CancelOnDrop,
    error::JsonError,
    state::choice_log::ChoiceLog,
    sync::{shared::Watcher, wait_list::Interest},
};

/// One JSON text of a log, and a parser that has read it as far as it was asked for.
#[derive(Clone)]
pub(crate) struct JsonText {
    pub(super) log: ChoiceLog,
    pub(super) guard: Arc<CancelOnDrop>,
    pub(super) kind: TextKind,
    parser: Arc<Mutex<PartialParser>>,
}

/// The parser of a partial value, and the next event that it reads.
#[derive(Default)]
struct PartialParser {
    seq: usize,
    partial: Partial,
}

impl JsonText {
    pub(super) fn new(log: &ChoiceLog, guard: &Arc<CancelOnDrop>, kind: TextKind) -> Self {
        Self {
            log: log.clone(),
            guard: Arc::clone(guard),
            kind,
            parser: Arc::default(),
        }
    }

    pub(super) fn choice(&self) -> ChoiceIndex {
        self.log.index()
    }

    /// The value so far. Only what is new since the last call is read, in portions, so that the log is not locked for long.
    pub(super) fn partial(&self) -> Option<Value> {
        let mut parser = self.parser.lock().unwrap_or_else(PoisonError::into_inner);
        let PartialParser { seq, partial } = &mut *parser;
        loop {
            let before = *seq;
            let text = self
                .log
                .read(|state| copy(state, self.kind, seq, &mut Vec::new()));
            partial.feed(&text);
            if *seq == before {
                return partial.value();
            }
        }
    }

    pub(super) fn field(&self, pointer: &str) -> Field {
        let parser = match Pointer::parse(pointer) {
            Ok(pointer) => Ok(json::Field::new(pointer)),
            Err(error) => Err(JsonErrorKind::Pointer(error)),
        };
        Field {
            text: TextCursor::new(&self.log, &self.guard, self.kind),
            json: self.clone(),
            parser,
            done: false,
        }
    }

    pub(super) fn error(&self, raw: &str, kind: impl Into<JsonErrorKind>) -> JsonError {
        let call_index = match self.kind {
            TextKind::Arguments(call_index) => Some(call_index),
            TextKind::Content | TextKind::Reasoning | TextKind::Refusal => None,
        };
        JsonError::new(self.choice(), call_index, raw.into(), kind.into())
    }
}

impl fmt::Debug for JsonText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JsonText")
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}

/// One string of a JSON text, decoded, while the model writes it; see [`ToolCallHandle::field`](crate::ToolCallHandle::field).
///
/// One item per wire delta that brings some of the string, from the first character; half of an escape sequence is held
/// back. `None` follows once the string is complete, even if the text goes on. If the path is absent, leads to a value that
/// is not a string, or to a string that was cut, the stream ends with one error.
///
/// Any number of these may be taken, at any time: each starts at the first character. Dropping it cancels nothing while
/// another handle lives.
///
/// # Examples
///
/// ```
/// # use futures::stream;
/// use futures::TryStreamExt;
/// use unbraid::Completions;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let body = concat!(
/// #     r#"data: {"choices":[{"index":0,"delta":{"content":"{\"answer\":\"It ra"}}]}"#, "\n\n",
/// #     r#"data: {"choices":[{"index":0,"delta":{"content":"ins.\"}"}}]}"#, "\n\ndata: [DONE]\n\n",
/// # );
/// # let bytes = stream::iter([Ok::<_, std::io::Error>(body)]);
/// let choice = Completions::from_byte_stream(bytes).first().await?;
/// let deltas: Vec<_> = choice.content_json().field("/answer").try_collect().await?;
/// assert_eq!(deltas, ["It ra", "ins."]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Field {
    text: TextCursor,
    json: JsonText,
    /// The parser of the field, or what is wrong with its path.
    parser: Result<json::Field, JsonErrorKind>,
    done: bool,
}

impl Field {
    fn poll_item(&mut self, cx: &Context<'_>) -> Poll<Option<Result<Text, JsonError>>> {
        while !self.done {
            if let Some(end) = self.early_end() {
                return self.end(end);
            }
            let Poll::Ready(item) = self.text.poll_item(cx) else {
                return Poll::Pending;
            };
            match item {
                Some(Ok(fragment)) => {
                    let decoded = self.feed(&fragment);
                    if !decoded.is_empty() {
                        return Poll::Ready(Some(Ok(decoded.as_str().into())));
                    }
                }
                Some(Err(error)) => return self.end(Some(error.into())),
                None => {
                    let end = self.end_of_text();
                    return self.end(end);
                }
            }
        }
        Poll::Ready(None)
    }

    /// Ends the stream, with an error if there is one.
    fn end(&mut self, error: Option<JsonErrorKind>) -> Poll<Option<Result<Text, JsonError>>> {
        self.done = true;
        Poll::Ready(error.map(|kind| Err(self.json.error("", kind))))
    }

    /// The decoded text in a fragment; mostly that is the whole fragment, or nothing.
    fn feed(&mut self, fragment: &str) -> String {
        let mut decoded = String::new();
        if let Ok(field) = &mut self.parser {
            field.feed(fragment, &mut |text| decoded.push_str(text));
        }
        decoded
    }

    /// The end of the stream, if nothing more can come although the text goes on.
    fn early_end(&self) -> Option<Option<JsonErrorKind>> {
        match &self.parser {
            Ok(field) => match field.state() {
                FieldState::Waiting | FieldState::Typing => None,
                FieldState::Done => Some(None),
                _ => Some(self.end_of_text()),
            },
            Err(_) => Some(self.end_of_text()),
        }
    }

    /// The error of a field that is not complete at the end of the text.
    fn end_of_text(&self) -> Option<JsonErrorKind> {
        match &self.parser {
            Ok(field) => field.finish().err().map(JsonErrorKind::Field),
            Err(error) => Some(error.clone()),
        }
    }

    fn is_done(&self) -> bool {
        self.done
    }
}

cursor!(Field, Text, JsonError);

/// The content of a choice in JSON mode, usable before it is complete; see
/// [`Choice::content_json`](crate::Choice::content_json).
///
/// A clone shares the parser of [`partial`](Self::partial). Dropping it cancels nothing while another handle lives.
///
/// # Examples
///
/// ```
/// # use futures::stream;
/// use unbraid::Completions;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let body = r#"data: {"choices":[{"index":0,"delta":{"content":"{\"steps\":[\"mix\",\"bake\"]}"}}]}"#.to_owned() + "\n\ndata: [DONE]\n\n";
/// # let bytes = stream::iter([Ok::<_, std::io::Error>(body)]);
/// let json = Completions::from_byte_stream(bytes).first().await?.content_json();
/// assert_eq!(json.field("/steps/0").next().await.unwrap()?, "mix");
/// let recipe: serde_json::Value = json.parse().await?;
/// assert_eq!(recipe["steps"][1], "bake");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct ContentJson(pub(super) JsonText);

impl ContentJson {
    /// One string of the content, decoded, while it is written. The path is a JSON pointer (RFC 6901): `/answer`,
    /// `/steps/0/text`.
    ///
    /// # Examples
    ///
    /// See [`Field`].
    #[must_use]
    pub fn field(&self, pointer: &str) -> Field {
        self.0.field(pointer)
    }

    /// The value so far, completed as well as possible; `None` before its first byte.
    ///
    /// It costs as much as has arrived since the last call, and a copy of the value.
    ///
    /// # Examples
    ///
    /// ```
    /// # use futures::{StreamExt, stream};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let body = r#"data: {"choices":[{"index":0,"delta":{"content":"{\"steps\":[\"mix\",\"ba"}}]}"#.to_owned() + "\n\n";
    /// # let bytes = stream::iter([Ok::<_, std::io::Error>(body)]).chain(stream::pending());
    /// let choice = unbraid::Completions::from_byte_stream(bytes).first().await?; // a stream that goes on
    /// let so_far = choice.content_json().partial().unwrap();
    /// assert_eq!(so_far["steps"][0], "mix");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn partial(&self) -> Option<Value> {
        self.0.partial()
    }

    /// Waits for the end and parses the whole content, strictly.
    ///
    /// # Errors
    ///
    /// What is wrong with the JSON, or the error that the choice ended with ([`JsonErrorKind::Choice`]); the error holds the raw
    /// text. Content that is empty, as that of a refusal is, and content that the end of the choice may have cut, is
    /// [`JsonErrorKind::Truncated`].
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe: dropping the future loses nothing.
    ///
    /// # Examples
    ///
    /// See [`ContentJson`].
    pub async fn parse<T: DeserializeOwned>(&self) -> Result<T, JsonError> {
        let text = self.full_text().await?;
        parse_json(&text).map_err(|kind| self.0.error(&text, kind))
    }

    /// As [`parse`](Self::parse), after the repairs that are allowed; the raw text stays as it is.
    ///
    /// # Errors
    ///
    /// As [`parse`](Self::parse), for what no allowed repair fixes.
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe: dropping the future loses nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// # use futures::stream;
    /// use unbraid::{Completions, json::Repair};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let body = r#"data: {"choices":[{"index":0,"delta":{"content":"{\"text\":\"two\nlines\"}"}}]}"#.to_owned() + "\n\ndata: [DONE]\n\n";
    /// # let bytes = stream::iter([Ok::<_, std::io::Error>(body)]);
    /// let json = Completions::from_byte_stream(bytes).first().await?.content_json();
    /// let value: serde_json::Value = json.parse_repaired(Repair::default()).await?;
    /// assert_eq!(value["text"], "two\nlines");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn parse_repaired<T: DeserializeOwned>(
        &self,
        allowed: Repair,
    ) -> Result<T, JsonError> {
        let text = self.full_text().await?;
        parse_json_repaired(&text, allowed).map_err(|kind| self.0.error(&text, kind))
    }

    async fn full_text(&self) -> Result<String, JsonError> {
        let result = Watcher::with_interest(Interest::OTHER, &self.0.log)
            .wait_for(|state| state.transcript.result())
            .await;
        match result {
            Ok(outcome) => {
                let text = outcome.message.content;
                if may_continue(&text, &outcome.end) {
                    let bytes = text.len();
                    return Err(self.0.error(&text, JsonErrorKind::Truncated { bytes }));
                }
                Ok(text)
            }
            Err(error) => {
                let raw = error.partial().message.content.clone();
                Err(self.0.error(&raw, error))
            }
        }
    }
}
