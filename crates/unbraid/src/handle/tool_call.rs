//! The calls of a choice, each with its arguments as they are written.

use std::{
    sync::Arc,
    task::{Context, Poll},
};

use serde::de::DeserializeOwned;
use serde_json::Value;
use unbraid_core::{
    CallKind, ChoiceError, ChoiceIndex, Event, EventFilter, JsonErrorKind, Sequenced, Text,
    ToolCall, json::Repair,
};

use super::{
    cursor,
    events::EventCursor,
    json::{Field, JsonText},
    text::{Cursor, Lane},
};
use crate::{
    control::Guard,
    error::JsonError,
    state::choice_log::{Log, Record},
    sync::shared::Watcher,
    sync::wait_list::Topics,
};

/// The calls of a choice, each as soon as it is known by its name; see [`Choice::tool_calls`](crate::Choice::tool_calls).
///
/// Tool calls, custom tools and the `function_call` of 2023 alike. After the end it gives `None`, or first the error that
/// cut the choice. Dropping it frees and cancels nothing while another handle lives.
#[derive(Clone)]
pub struct ToolCalls {
    pub(super) events: EventCursor,
    log: Log,
    guard: Arc<Guard>,
}

impl ToolCalls {
    pub(crate) fn new(log: &Log, guard: &Arc<Guard>) -> Self {
        Self {
            events: EventCursor::new(log, guard, EventFilter::ToolCallStarts),
            log: log.clone(),
            guard: Arc::clone(guard),
        }
    }

    fn poll_item(&mut self, cx: &Context<'_>) -> Poll<Option<Result<ToolCallHandle, ChoiceError>>> {
        loop {
            let Poll::Ready(event) = self.events.poll_event(cx) else {
                return Poll::Pending;
            };
            match event {
                Some(Ok(stamped)) => {
                    if let Some(call) = ToolCallHandle::new(stamped, &self.log, &self.guard) {
                        return Poll::Ready(Some(Ok(call)));
                    }
                }
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            }
        }
    }

    fn is_done(&self) -> bool {
        self.events.done
    }
}

cursor!(ToolCalls, ToolCallHandle, ChoiceError);

/// One function call of a choice, usable while its arguments are still being written.
///
/// Every stream taken from it starts at the first fragment, whenever it is taken and any number of times. A clone is the
/// same call. Dropping it frees and cancels nothing while another handle lives.
///
/// # Examples
///
/// ```
/// # use futures::stream;
/// use unbraid::Completions;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let body = concat!(
/// #     r#"data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"weather","arguments":"{\"city\":"}}]}}]}"#, "\n\n",
/// #     r#"data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\"Oslo\"}"}}]},"finish_reason":"tool_calls"}]}"#,
/// #     "\n\ndata: [DONE]\n\n",
/// # );
/// # let bytes = stream::iter([Ok::<_, std::io::Error>(body)]);
/// let choice = Completions::from_byte_stream(bytes).first().await?;
/// let mut calls = choice.tool_calls();
/// while let Some(call) = calls.next().await {
///     let call = call?;
///     assert_eq!(&*call.name(), "weather");
///     let mut city = call.field("/city"); // typed by the model, letter by letter
///     while let Some(delta) = city.next().await {
///         print!("{}", delta?);
///     }
///     let arguments: serde_json::Value = call.parse().await?; // once they are whole, and only then
///     assert_eq!(arguments["city"], "Oslo");
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ToolCallHandle {
    pub(super) ordinal: u32,
    pub(super) index: Option<i64>,
    pub(super) name: Text,
    pub(super) kind: CallKind,
    json: JsonText,
}

impl ToolCallHandle {
    fn new(stamped: Sequenced, log: &Log, guard: &Arc<Guard>) -> Option<Self> {
        match stamped.event {
            Event::ToolCallStart {
                call_index: call,
                wire_index: index,
                name,
                kind,
                ..
            } => Some(Self {
                ordinal: call,
                index,
                name,
                kind,
                json: JsonText::new(log, guard, Lane::Arguments(call)),
            }),
            _ => None,
        }
    }

    /// The choice that it belongs to.
    #[must_use]
    pub fn choice(&self) -> ChoiceIndex {
        self.json.place().0
    }

    /// Its ordinal within the choice, from 0, in order of appearance.
    #[must_use]
    pub fn call_index(&self) -> u32 {
        self.ordinal
    }

    /// The wire's index, if it had one: a key, not a position (T4, T5).
    #[must_use]
    pub fn wire_index(&self) -> Option<i64> {
        self.index
    }

    /// The server's id, once it has come; some servers send it late, some never (T12, T13).
    #[must_use]
    pub fn id(&self) -> Option<Arc<str>> {
        let id = |record: &Record| record.transcript.call_id(self.ordinal).cloned();
        self.json.log.read(id)
    }

    /// The tool's name, as it stood when the call was told; empty if none ever came.
    #[must_use]
    pub fn name(&self) -> Text {
        self.name.clone()
    }

    /// Function, custom tool or legacy function call.
    #[must_use]
    pub fn kind(&self) -> CallKind {
        self.kind
    }

    /// The arguments, one item a wire fragment, verbatim: equal fragments are all given (T24).
    #[must_use]
    pub fn arguments(&self) -> Arguments {
        Arguments(Cursor::new(
            &self.json.log,
            &self.json.guard,
            self.json.lane,
        ))
    }

    /// One string of the arguments, decoded, as it is typed; the path is a JSON pointer (RFC 6901): `/answer`, `/rows/0/text`.
    #[must_use]
    pub fn field(&self, pointer: &str) -> Field {
        self.json.field(pointer)
    }

    /// The arguments so far as a value, as good as it can be told (J19); `None` before the first of it.
    ///
    /// It costs what has come since the last call, and a copy of the value. A value that looks whole is no sign that the
    /// call is complete (T27).
    #[must_use]
    pub fn partial(&self) -> Option<Value> {
        self.json.partial()
    }

    /// The call as it stands; `None` if its choice was discarded.
    #[must_use]
    pub fn snapshot(&self) -> Option<ToolCall> {
        self.json
            .log
            .read(|record| record.transcript.call(self.ordinal))
    }

    /// Waits for the end of the choice and gives the call with its status: the raw text, never repaired or replaced.
    ///
    /// A call that was cut or is not JSON is not an error here: its status says so. It is `truncated` also where the choice was cut
    /// before the first byte of its arguments (by `length`, say).
    ///
    /// # Errors
    ///
    /// The end that cut the choice; the error has the raw text.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn finished(&self) -> Result<ToolCall, JsonError> {
        let ended = |record: &Record| {
            let over = record.over()?;
            Some((record.transcript.call(self.ordinal), over))
        };
        let (call, over) = Watcher::of(Topics::REST, &self.json.log).wait(ended).await;
        match (call, over) {
            (Some(call), None) => Ok(call),
            (call, Some(error)) => {
                let raw = call.map(|call| call.arguments).unwrap_or_default();
                Err(self.json.error(&raw, error))
            }
            // The call was announced, so only discarding can have removed it, and that is an error above.
            (None, None) => Err(self.json.error("", JsonErrorKind::Truncated { bytes: 0 })),
        }
    }

    /// Waits for the end of the choice and parses the arguments, strictly: what was cut or needs a repair is an error.
    ///
    /// # Errors
    ///
    /// The end that cut the choice, or what is wrong with the arguments; the error has the raw text.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    ///
    /// # Examples
    ///
    /// Arguments that the token limit has cut are never handed out:
    ///
    /// ```
    /// # use futures::stream;
    /// use unbraid::{Completions, JsonErrorKind};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let body = concat!(
    /// #     r#"data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"f","arguments":"{\"a\":1"}}]},"finish_reason":"length"}]}"#,
    /// #     "\n\ndata: [DONE]\n\n",
    /// # );
    /// # let bytes = stream::iter([Ok::<_, std::io::Error>(body)]);
    /// let choice = Completions::from_byte_stream(bytes).first().await?;
    /// let call = choice.tool_calls().next().await.unwrap()?;
    /// let error = call.parse::<serde_json::Value>().await.unwrap_err();
    /// assert!(matches!(error.kind(), JsonErrorKind::Truncated { .. }));
    /// assert_eq!(error.raw(), "{\"a\":1");
    /// assert_eq!(error.to_string(), "choice 0: tool call 0: the text ends inside its JSON, after 6 bytes");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn parse<T: DeserializeOwned>(&self) -> Result<T, JsonError> {
        let call = self.finished().await?;
        call.parse()
            .map_err(|fault| self.json.error(&call.arguments, fault))
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
        let call = self.finished().await?;
        call.parse_repaired(allowed)
            .map_err(|fault| self.json.error(&call.arguments, fault))
    }
}

/// The fragments of a call's arguments; see [`ToolCallHandle::arguments`].
///
/// After the end of the choice it gives `None`, or first the error that cut it. A clone goes on from the same place on its
/// own. Dropping it frees and cancels nothing while another handle lives.
#[derive(Debug, Clone)]
pub struct Arguments(Cursor);

impl Arguments {
    fn poll_item(&mut self, cx: &Context<'_>) -> Poll<Option<Result<Text, ChoiceError>>> {
        self.0.poll_item(cx)
    }

    fn is_done(&self) -> bool {
        self.0.done
    }
}

cursor!(Arguments, Text, ChoiceError);
