//! The calls of a choice, each with its arguments while they are written.

use std::{
    sync::Arc,
    task::{Context, Poll},
};

use serde::de::DeserializeOwned;
use serde_json::Value;
use unbraid_core::{
    CallIndex, CallKind, ChoiceError, ChoiceIndex, Event, JsonErrorKind, Sequenced, Text, ToolCall,
    internal::{EventFilter, TextKind},
    json::Repair,
};

use super::{
    cursor,
    events::EventCursor,
    json::{Field, JsonText},
    text::TextCursor,
};
use crate::{
    control::CancelOnDrop,
    error::JsonError,
    state::choice_log::{ChoiceLog, LogState},
    sync::{shared::Watcher, wait_list::Interest},
};

/// The calls of a choice, each as soon as its name is known; see [`Choice::tool_calls`](crate::Choice::tool_calls).
///
/// It returns tool calls, custom tools and the `function_call` of 2023 alike. After the end it returns `None`, or first the
/// error that cut the choice. A clone continues from the same position on its own. Dropping it cancels nothing while another
/// handle lives.
///
/// # Examples
///
/// ```
/// # use futures::stream;
/// use unbraid::Completions;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let body = r#"data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"weather","arguments":"{\"city\":\"Oslo\"}"}}]},"finish_reason":"tool_calls"}]}"#.to_owned() + "\n\ndata: [DONE]\n\n";
/// # let bytes = stream::iter([Ok::<_, std::io::Error>(body)]);
/// let mut calls = Completions::from_byte_stream(bytes).first().await?.tool_calls();
/// while let Some(call) = calls.next().await {
///     let call = call?;
///     println!("{} is called", call.name());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ToolCalls {
    pub(super) events: EventCursor,
    log: ChoiceLog,
    guard: Arc<CancelOnDrop>,
}

impl ToolCalls {
    pub(super) fn new(log: &ChoiceLog, guard: &Arc<CancelOnDrop>) -> Self {
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
                Some(Ok(event)) => {
                    if let Some(call) = ToolCallHandle::new(event, &self.log, &self.guard) {
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
/// Every stream taken from it starts at the first fragment, whenever and however often it is taken. A clone is the same
/// call. Dropping it cancels nothing while another handle lives. [`parse`](Self::parse) and [`finished`](Self::finished)
/// wait for the end of the choice; [`ready`](Self::ready) returns earlier, if the caller allows that.
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
///     let mut city = call.field("/city"); // while the model writes it
///     while let Some(delta) = city.next().await {
///         print!("{}", delta?);
///     }
///     let arguments: serde_json::Value = call.parse().await?; // once they are complete
///     assert_eq!(arguments["city"], "Oslo");
/// }
/// # Ok(())
/// # }
/// ```
///
/// What is known of a call, while it is written and at its end:
///
/// ```
/// # use futures::stream;
/// use unbraid::Completions;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let body = r#"data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"weather","arguments":"{\"city\":\"Oslo\"}"}}]},"finish_reason":"tool_calls"}]}"#.to_owned() + "\n\ndata: [DONE]\n\n";
/// # let bytes = stream::iter([Ok::<_, std::io::Error>(body)]);
/// let choice = Completions::from_byte_stream(bytes).first().await?;
/// let call = choice.tool_calls().next().await.unwrap()?;
/// println!("call {}", call.call_index());
/// assert_eq!(call.wire_index(), Some(0));
/// assert_eq!(call.kind(), unbraid::CallKind::Function);
/// let data = call.finished().await?; // waits for the end of the choice
/// assert_eq!(data.status, Some(unbraid::CallStatus::Complete));
/// assert_eq!(call.snapshot().unwrap().arguments, data.arguments);
/// assert_eq!(call.partial().unwrap()["city"], "Oslo");
/// let repaired: serde_json::Value = call.parse_repaired(unbraid::json::Repair::default()).await?;
/// assert_eq!(repaired["city"], "Oslo");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ToolCallHandle {
    pub(super) call_index: CallIndex,
    pub(super) wire_index: Option<i64>,
    pub(super) name: Text,
    pub(super) kind: CallKind,
    pub(super) json: JsonText,
}

impl ToolCallHandle {
    fn new(sequenced: Sequenced, log: &ChoiceLog, guard: &Arc<CancelOnDrop>) -> Option<Self> {
        match sequenced.event {
            Event::ToolCallStart {
                call_index,
                wire_index,
                name,
                kind,
                ..
            } => Some(Self {
                call_index,
                wire_index,
                name,
                kind,
                json: JsonText::new(log, guard, TextKind::Arguments(call_index)),
            }),
            _ => None,
        }
    }

    /// The choice that the call belongs to.
    #[must_use]
    pub fn choice(&self) -> ChoiceIndex {
        self.json.choice()
    }

    /// The ordinal of the call within its choice, from 0, in order of appearance.
    #[must_use]
    pub fn call_index(&self) -> CallIndex {
        self.call_index
    }

    /// The index on the wire, if there was one. It is a key, not a position.
    #[must_use]
    pub fn wire_index(&self) -> Option<i64> {
        self.wire_index
    }

    /// The server's id, once it has arrived. Some servers send it late, some never.
    #[must_use]
    pub fn id(&self) -> Option<Arc<str>> {
        let log = &self.json.log;
        log.read(|state| state.transcript.call_id(self.call_index).cloned())
    }

    /// The tool's name, as it was when the call was announced; empty if the call has none.
    #[must_use]
    pub fn name(&self) -> Text {
        self.name.clone()
    }

    /// Function, custom tool or legacy function call.
    #[must_use]
    pub fn kind(&self) -> CallKind {
        self.kind
    }

    /// The arguments, one item per wire fragment, verbatim: equal fragments are all returned (T24).
    #[must_use]
    pub fn arguments(&self) -> Arguments {
        let json = &self.json;
        Arguments(TextCursor::new(&json.log, &json.guard, json.kind))
    }

    /// One string of the arguments, decoded, while it is written. The path is a JSON pointer (RFC 6901): `/answer`,
    /// `/rows/0/text`.
    ///
    /// # Examples
    ///
    /// See [`ToolCallHandle`].
    #[must_use]
    pub fn field(&self, pointer: &str) -> Field {
        self.json.field(pointer)
    }

    /// The arguments so far as a value, completed as well as possible; `None` before their first byte.
    ///
    /// It costs as much as has arrived since the last call, and a copy of the value. A value that parses does not mean that
    /// the call is complete (T27).
    #[must_use]
    pub fn partial(&self) -> Option<Value> {
        self.json.partial()
    }

    /// The call as it is now; `None` if its choice was discarded.
    #[must_use]
    pub fn snapshot(&self) -> Option<ToolCall> {
        self.json
            .log
            .read(|state| state.transcript.call(self.call_index))
    }

    /// Waits for the end of the choice and returns the call with its status, and the raw text of its arguments, which is never
    /// repaired or replaced.
    ///
    /// A call that was cut or is not JSON is not an error here: its status says so. It is also `truncated` if the choice was
    /// cut before the first byte of its arguments, for example by `length`.
    ///
    /// # Errors
    ///
    /// The end that cut the choice; the error holds the raw text.
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe: dropping the future loses nothing.
    pub async fn finished(&self) -> Result<ToolCall, JsonError> {
        let ended = |state: &LogState| {
            let end = state.stream_end()?;
            Some((state.transcript.call(self.call_index), end))
        };
        let mut log = Watcher::with_interest(Interest::OTHER, &self.json.log);
        match log.wait_for(ended).await {
            (Some(call), None) => Ok(call),
            (call, Some(error)) => {
                let raw = call.map(|call| call.arguments).unwrap_or_default();
                Err(self.json.error(&raw, error))
            }
            // The call was announced, so only a discard can have removed it, and that is an error above.
            (None, None) => Err(self.json.error("", JsonErrorKind::Truncated { bytes: 0 })),
        }
    }

    /// Waits for the end of the choice and parses the arguments, strictly: a text that was cut or needs a repair is an error.
    ///
    /// # Errors
    ///
    /// The end that cut the choice, or what is wrong with the arguments; the error holds the raw text.
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe: dropping the future loses nothing.
    ///
    /// # Examples
    ///
    /// Arguments that the token limit has cut are never returned:
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
            .map_err(|kind| self.json.error(&call.arguments, kind))
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
    pub async fn parse_repaired<T: DeserializeOwned>(
        &self,
        allowed: Repair,
    ) -> Result<T, JsonError> {
        let call = self.finished().await?;
        call.parse_repaired(allowed)
            .map_err(|kind| self.json.error(&call.arguments, kind))
    }
}

/// The fragments of a call's arguments; see [`ToolCallHandle::arguments`].
///
/// After the end of the choice the stream returns `None`, or first the error that cut it. A clone continues from the same
/// position on its own. Dropping it cancels nothing while another handle lives.
///
/// # Examples
///
/// ```
/// # use futures::stream;
/// use unbraid::Completions;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let body = r#"data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"weather","arguments":"{\"city\":\"Oslo\"}"}}]},"finish_reason":"tool_calls"}]}"#.to_owned() + "\n\ndata: [DONE]\n\n";
/// # let bytes = stream::iter([Ok::<_, std::io::Error>(body)]);
/// let choice = Completions::from_byte_stream(bytes).first().await?;
/// let call = choice.tool_calls().next().await.unwrap()?;
/// let mut arguments = call.arguments();
/// while let Some(fragment) = arguments.next().await {
///     print!("{}", fragment?);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Arguments(TextCursor);

impl Arguments {
    fn poll_item(&mut self, cx: &Context<'_>) -> Poll<Option<Result<Text, ChoiceError>>> {
        self.0.poll_item(cx)
    }

    fn is_done(&self) -> bool {
        self.0.done
    }
}

cursor!(Arguments, Text, ChoiceError);
