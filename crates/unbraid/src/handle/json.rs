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
    json::{self, FieldState, Partial, Pointer, Repair},
    parse_json, parse_json_repaired,
};

use super::{
    cursor,
    text::{Cursor, Lane, copy},
};
use crate::{
    control::Guard,
    error::JsonError,
    state::choice_log::Log,
    sync::{shared::Watcher, wait_list::Topics},
};

/// One JSON text of a log, and the parser that has read as much of it as was asked for.
#[derive(Clone)]
pub(crate) struct JsonText {
    pub(crate) log: Log,
    pub(crate) guard: Arc<Guard>,
    pub(crate) lane: Lane,
    kept: Arc<Mutex<Kept>>,
}

/// How far the parser of a partial value has come.
#[derive(Default)]
struct Kept {
    seq: usize,
    partial: Partial,
}

impl JsonText {
    pub(crate) fn new(log: &Log, guard: &Arc<Guard>, lane: Lane) -> Self {
        Self {
            log: log.clone(),
            guard: Arc::clone(guard),
            lane,
            kept: Arc::default(),
        }
    }

    /// Where it stands: the choice, and the call if it is one's arguments.
    pub(crate) fn place(&self) -> (ChoiceIndex, Option<u32>) {
        let call = match self.lane {
            Lane::Arguments(call) => Some(call),
            Lane::Content | Lane::Reasoning | Lane::Refusal => None,
        };
        (self.log.index(), call)
    }

    /// The value so far. Only what is new since the last time is read, in pieces, so that the log is free in between.
    pub(crate) fn partial(&self) -> Option<Value> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let Kept { seq, partial } = &mut *kept;
        loop {
            let before = *seq;
            let text = self
                .log
                .read(|record| copy(record, self.lane, seq, &mut Vec::new()));
            partial.feed(&text);
            if *seq == before {
                return partial.value();
            }
        }
    }

    pub(crate) fn field(&self, pointer: &str) -> Field {
        let walk = match Pointer::parse(pointer) {
            Ok(pointer) => Ok(json::Field::new(pointer)),
            Err(error) => Err(JsonErrorKind::Pointer(error)),
        };
        Field {
            text: Cursor::new(&self.log, &self.guard, self.lane),
            json: self.clone(),
            walk,
            done: false,
        }
    }

    pub(crate) fn error(&self, raw: &str, fault: impl Into<JsonErrorKind>) -> JsonError {
        let (choice, call) = self.place();
        JsonError::new(choice, call, raw.into(), fault.into())
    }
}

impl fmt::Debug for JsonText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JsonText")
            .field("lane", &self.lane)
            .finish_non_exhaustive()
    }
}

/// One string of a JSON text, decoded, as the model types it; see [`ToolCallHandle::field`](crate::ToolCallHandle::field).
///
/// One item a wire delta that brings some of it, from the first character; half an escape is held back. `None` follows
/// once the string is whole, although the text may go on. A path that is absent, leads to no string, or to a string that
/// was cut, ends with one error. Any number of these may be taken, at any time: each starts at the first character.
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
/// let typed: Vec<_> = choice.content_json().field("/answer").try_collect().await?;
/// assert_eq!(typed, ["It ra", "ins."]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Field {
    text: Cursor,
    json: JsonText,
    walk: Result<json::Field, JsonErrorKind>,
    done: bool,
}

impl Field {
    fn poll_item(&mut self, cx: &Context<'_>) -> Poll<Option<Result<Text, JsonError>>> {
        while !self.done {
            if let Some(end) = self.settled() {
                self.done = true;
                return Poll::Ready(end.map(Err));
            }
            let Poll::Ready(item) = self.text.poll_item(cx) else {
                return Poll::Pending;
            };
            match item {
                Some(Ok(fragment)) => {
                    let typed = self.feed(&fragment);
                    if !typed.is_empty() {
                        return Poll::Ready(Some(Ok(typed.as_str().into())));
                    }
                }
                Some(Err(cut)) => return self.fail(cut),
                None => {
                    let end = self.walk.as_ref().map(json::Field::finish);
                    let fault = match end {
                        Ok(Ok(())) => None,
                        Ok(Err(error)) => Some(JsonErrorKind::Field(error)),
                        Err(fault) => Some(fault.clone()),
                    };
                    self.done = true;
                    return Poll::Ready(fault.map(|fault| Err(self.json.error("", fault))));
                }
            }
        }
        Poll::Ready(None)
    }

    fn fail(&mut self, fault: impl Into<JsonErrorKind>) -> Poll<Option<Result<Text, JsonError>>> {
        self.done = true;
        Poll::Ready(Some(Err(self.json.error("", fault))))
    }

    /// The decoded text in a fragment; mostly it is the whole fragment, or nothing.
    fn feed(&mut self, fragment: &str) -> String {
        let mut typed = String::new();
        if let Ok(field) = &mut self.walk {
            field.feed(fragment, &mut |text| typed.push_str(text));
        }
        typed
    }

    /// Whether nothing more can come: `Some` of an error or of none.
    fn settled(&self) -> Option<Option<JsonError>> {
        let fault = match &self.walk {
            Err(fault) => fault.clone(),
            Ok(field) => match field.state() {
                FieldState::Waiting | FieldState::Typing => return None,
                FieldState::Done => return Some(None),
                _ => match field.finish() {
                    Ok(()) => return Some(None),
                    Err(error) => JsonErrorKind::Field(error),
                },
            },
        };
        Some(Some(self.json.error("", fault)))
    }

    fn is_done(&self) -> bool {
        self.done
    }
}

cursor!(Field, Text, JsonError);

/// The content of a choice in JSON mode, usable before it is whole; see [`Choice::content_json`](crate::Choice::content_json).
///
/// A clone shares the parser of [`partial`](Self::partial). Dropping it frees and cancels nothing while another handle
/// lives.
#[derive(Debug, Clone)]
pub struct ContentJson(pub(crate) JsonText);

impl ContentJson {
    /// One string of it, decoded, as it is typed; the path is a JSON pointer (RFC 6901): `/answer`, `/steps/0/text`.
    #[must_use]
    pub fn field(&self, pointer: &str) -> Field {
        self.0.field(pointer)
    }

    /// The value so far, as good as it can be told (J19); `None` before the first of it.
    ///
    /// It costs what has come since the last call, and a copy of the value.
    #[must_use]
    pub fn partial(&self) -> Option<Value> {
        self.0.partial()
    }

    /// Waits for the end and parses the whole content, strictly.
    ///
    /// # Errors
    ///
    /// The end that cut the choice, or what is wrong with the JSON; the error has the raw text.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn parse<T: DeserializeOwned>(&self) -> Result<T, JsonError> {
        let text = self.whole().await?;
        parse_json(&text).map_err(|fault| self.0.error(&text, fault))
    }

    /// As [`parse`](Self::parse), after the repairs that are allowed; the raw text stays as it is (D15).
    ///
    /// # Errors
    ///
    /// As [`parse`](Self::parse), for what no allowed repair mends.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn parse_repaired<T: DeserializeOwned>(
        &self,
        allowed: Repair,
    ) -> Result<T, JsonError> {
        let text = self.whole().await?;
        parse_json_repaired(&text, allowed).map_err(|fault| self.0.error(&text, fault))
    }

    async fn whole(&self) -> Result<String, JsonError> {
        let outcome = Watcher::of(Topics::REST, &self.0.log)
            .wait(|record| record.transcript.result())
            .await;
        match outcome {
            Ok(finished) => Ok(finished.message.content),
            Err(error) => {
                let raw = error.partial().message.content.clone();
                Err(self.0.error(&raw, error))
            }
        }
    }
}
