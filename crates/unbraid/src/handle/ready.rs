//! When a call may be run: the waiting side of the core's `ReadyCursor`.

use std::{
    future::poll_fn,
    task::{Context, Poll},
};

use unbraid_core::{
    JsonErrorKind, ReadyCursor, ReadyPolicy, ToolCall,
    internal::{TextKind, advance_ready, report_ready},
};

use super::{coop_budget::CoopBudget, tool_call::ToolCallHandle};
use crate::{
    error::JsonError,
    state::choice_log::LogState,
    sync::{shared::Watcher, wait_list::Interest},
};

/// The number of bytes of arguments that are read at once: the log is locked for so long.
const READ_BYTES: usize = 64 * 1024;

impl ToolCallHandle {
    /// Waits until the call may be run, and returns it: its name, its arguments and their status as of that moment.
    ///
    /// That is the first of the moments that the policy allows; [`ReadyPolicy`] defines them. With
    /// [`NextCall`](ReadyPolicy::NextCall) even the last call of a choice is ready at the finish reason, before the choice
    /// ends. An id that arrives later (T12) is missing; [`id`](Self::id) returns it once it has arrived.
    ///
    /// Any number of tasks may wait, and a caller that comes late gets the same name and arguments: the moment follows from
    /// the stream alone, and a [`ReadyCursor`] finds the same one without a runtime. Only an id and unknown fields that
    /// have arrived in the meantime, and with them the status, can differ. If more of the call has arrived since, a caller
    /// that comes late gets that as an error. A caller that already has the call learns it from
    /// [`confirmed`](Self::confirmed).
    ///
    /// # Errors
    ///
    /// [`JsonErrorKind::LateFragment`] if more of the call arrived after it was ready. At the end of the choice, for a call
    /// that was not ready before: the end that cut the choice, or what is wrong with the call, which has no name, or
    /// arguments that are truncated, concatenated or invalid. A call without an id, and one that needs a repair, are not
    /// errors; the status reports it. The error holds the raw text.
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe: dropping the future loses nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// # use futures::{StreamExt, stream};
    /// use unbraid::{Completions, ReadyPolicy};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let body = r#"data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"weather","arguments":"{\"city\":\"Oslo\"}"}}]},"finish_reason":"tool_calls"}]}"#.to_owned() + "\n\n";
    /// # let bytes = stream::iter([Ok::<_, std::io::Error>(body)]).chain(stream::pending());
    /// // This body goes on after the finish reason, and the choice has not ended.
    /// let choice = Completions::from_byte_stream(bytes).first().await?;
    /// let call = choice.tool_calls().next().await.unwrap()?;
    /// let ready = call.ready(ReadyPolicy::NextCall).await?;
    /// let arguments: serde_json::Value = ready.parse()?;
    /// assert_eq!((&*ready.name, &arguments["city"]), ("weather", &"Oslo".into()));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn ready(&self, policy: ReadyPolicy) -> Result<ToolCall, JsonError> {
        self.follow(policy, Until::Ready).await
    }

    /// Waits for the end of the choice and returns the call as [`ready`](Self::ready) did, if nothing more of it arrived.
    ///
    /// A caller that runs calls early awaits it before it uses the result, or beside the tool in order to abort that: the
    /// error is returned as soon as more of the call arrives. An end that cuts the choice after the call was ready is not
    /// an error here.
    ///
    /// # Errors
    ///
    /// Those of [`ready`](Self::ready), and the end of a choice that was discarded.
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe: dropping the future loses nothing.
    ///
    /// # Examples
    ///
    /// Arguments that are JSON and then go on (T27):
    ///
    /// ```
    /// # use futures::stream;
    /// use unbraid::{Completions, JsonErrorKind, ReadyPolicy};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let body = concat!(
    /// #     r#"data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"rm","arguments":"{\"path\":\"/tmp\"}"}}]}}]}"#, "\n\n",
    /// #     r#"data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":",\"force\":true}"}}]},"finish_reason":"tool_calls"}]}"#,
    /// #     "\n\ndata: [DONE]\n\n",
    /// # );
    /// # let bytes = stream::iter([Ok::<_, std::io::Error>(body)]);
    /// let choice = Completions::from_byte_stream(bytes).first().await?;
    /// let call = choice.tool_calls().next().await.unwrap()?;
    /// let error = call.confirmed(ReadyPolicy::ValidJson).await.unwrap_err();
    /// assert!(matches!(error.kind(), JsonErrorKind::LateFragment { bytes: 15, .. }));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn confirmed(&self, policy: ReadyPolicy) -> Result<ToolCall, JsonError> {
        self.follow(policy, Until::Confirmed).await
    }

    async fn follow(&self, policy: ReadyPolicy, until: Until) -> Result<ToolCall, JsonError> {
        // Nothing but the call starts, the finish reason and the end can make a call ready, except where its text can.
        let interest = match (policy, until) {
            (ReadyPolicy::ValidJson, _) | (_, Until::Confirmed) => Interest::CALLS,
            (_, Until::Ready) => Interest::OTHER,
        };
        let mut follower = Follower {
            log: Watcher::with_interest(interest, &self.json.log),
            cursor: ReadyCursor::new(self.call_index, policy),
            kind: self.json.kind,
            until,
            ready: None,
            budget: CoopBudget::default(),
        };
        let result = poll_fn(|cx| follower.poll(cx)).await;
        result.map_err(|fault| self.json.error(&fault.raw, fault.kind))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Until {
    Ready,
    Confirmed,
}

/// One wait for a call.
struct Follower {
    log: Watcher<LogState>,
    cursor: ReadyCursor,
    kind: TextKind,
    until: Until,
    /// The call, once it is ready.
    ready: Option<ToolCall>,
    budget: CoopBudget,
}

/// What is wrong with a call, and its arguments so far.
struct Fault {
    kind: JsonErrorKind,
    raw: String,
}

/// What a read of the log found.
enum Found {
    /// There is more to read.
    More,
    Ready(ToolCall),
    Fault(Fault),
    /// The choice has ended.
    End,
}

impl Follower {
    fn poll(&mut self, cx: &Context<'_>) -> Poll<Result<ToolCall, Fault>> {
        loop {
            let Self {
                log, cursor, kind, ..
            } = self;
            let Poll::Ready(found) = log.poll(cx, |state| read(state, cursor, *kind)) else {
                return Poll::Pending;
            };
            match found {
                Found::More if self.budget.exhausted(cx) => return Poll::Pending,
                Found::More => {}
                Found::Ready(call) if self.until == Until::Ready => return Poll::Ready(Ok(call)),
                Found::Ready(call) => self.ready = Some(call),
                Found::Fault(fault) => return Poll::Ready(Err(fault)),
                // The call was announced, so it is ready by the end at the latest.
                Found::End => {
                    return Poll::Ready(self.ready.take().ok_or_else(Fault::without_call));
                }
            }
        }
    }
}

impl Fault {
    fn without_call() -> Self {
        Self {
            kind: JsonErrorKind::Truncated { bytes: 0 },
            raw: String::new(),
        }
    }
}

fn read(state: &LogState, cursor: &mut ReadyCursor, kind: TextKind) -> Poll<Found> {
    let transcript = &state.transcript;
    if !advance_ready(cursor, transcript, READ_BYTES) {
        return Poll::Ready(Found::More);
    }
    let raw = || match kind {
        TextKind::Arguments(call) => transcript.call(call).map(|call| call.arguments),
        TextKind::Content | TextKind::Reasoning | TextKind::Refusal => None,
    };
    let fault = |kind| {
        let raw = raw().unwrap_or_default();
        Poll::Ready(Found::Fault(Fault { kind, raw }))
    };
    match (report_ready(cursor, transcript), state.stream_end()) {
        (Some(Ok(call)), _) => Poll::Ready(Found::Ready(call)),
        (Some(Err(kind)), _) => fault(kind),
        (None, Some(Some(error))) if transcript.is_discarded() => fault(error.into()),
        (None, Some(_)) => Poll::Ready(Found::End),
        (None, None) => Poll::Pending,
    }
}
