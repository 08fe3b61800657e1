//! `run_calls`: the calls of one choice, at the same time.

use std::{future::Future, panic::AssertUnwindSafe, pin::pin, time::Duration};

use futures::{FutureExt, StreamExt, stream::FuturesUnordered};
use tokio::sync::Semaphore;
use unbraid_core::{CallKind, ReadyPolicy, ToolCall, json::Repair};

use super::{
    Tools,
    registry::Failure,
    result::{ToolError, ToolResult},
};
use crate::{
    error::JsonError,
    handle::{choice::Choice, tool_call::ToolCallHandle},
    reader::has_time_driver,
};

/// How [`run_calls`] runs calls: when, how many at once, and for how long.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use unbraid::{ReadyPolicy, tools::RunLimits};
///
/// let limits = RunLimits::default()
///     .with_ready(ReadyPolicy::NextCall)
///     .with_timeout(Some(Duration::from_secs(10)))
///     .with_concurrency(4);
/// assert_eq!((limits.concurrency, limits.repair), (4, None));
/// assert_eq!(RunLimits::default().ready, ReadyPolicy::AtEnd);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunLimits {
    /// When a call is run. The default is [`ReadyPolicy::AtEnd`].
    pub ready: ReadyPolicy,
    /// The time that each tool has from its start; with `None` it is not limited. The default is 60 seconds.
    pub timeout: Option<Duration>,
    /// How many tools run at once; 0 is read as 1. The default is 8. Calls that wait for their turn start in the order in which
    /// they were ready.
    pub concurrency: usize,
    /// Which repairs of the arguments are allowed (see [`parse_repaired`](ToolCall::parse_repaired)). With `None`, the
    /// default, arguments that need one are an error.
    pub repair: Option<Repair>,
}

impl Default for RunLimits {
    fn default() -> Self {
        Self {
            ready: ReadyPolicy::default(),
            timeout: Some(Duration::from_secs(60)),
            concurrency: 8,
            repair: None,
        }
    }
}

impl RunLimits {
    /// Sets [`ready`](Self::ready).
    #[must_use]
    pub fn with_ready(mut self, ready: ReadyPolicy) -> Self {
        self.ready = ready;
        self
    }

    /// Sets [`timeout`](Self::timeout).
    #[must_use]
    pub fn with_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets [`concurrency`](Self::concurrency).
    #[must_use]
    pub fn with_concurrency(mut self, concurrency: usize) -> Self {
        self.concurrency = concurrency;
        self
    }

    /// Sets [`repair`](Self::repair).
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid::{json::Repair, tools::RunLimits};
    ///
    /// let limits = RunLimits::default().with_repair(Some(Repair::CONTROLS));
    /// assert!(limits.repair.is_some());
    /// ```
    #[must_use]
    pub fn with_repair(mut self, repair: Option<Repair>) -> Self {
        self.repair = repair;
        self
    }
}

/// Runs the calls of a choice at the same time, each as soon as it is ready, and returns one result for each call, in the
/// order of the calls.
///
/// It returns when the choice has ended and every tool is done. Nothing fails as a whole: a tool that panics, fails or
/// takes too long, arguments that do not fit, and a name without a tool are results, with an error for the caller and a
/// text for the model. So is a call that the end of the choice cut. Whether the answer itself is usable is the caller's
/// decision: see [`Choice::finished`] and its finish reason. A choice without calls has no results, and neither have the
/// calls that did not run before their choice was discarded.
///
/// If more of a call arrives after it was ready ([`JsonErrorKind::LateFragment`](crate::JsonErrorKind::LateFragment)), its
/// tool is dropped, and that error is its result. A call that a server sent in both formats runs once (T37): a
/// `function_call` is run at the end of the choice, unless it repeats a tool call.
///
/// The tools run inside of this future, on the task that polls it. A tool that computes for long, or blocks, delays the
/// others unless it moves its work to a task of its own.
///
/// # Cancel safety
///
/// Dropping the future drops the tools that are running at once, and their results are lost. The choice goes on.
///
/// # Examples
///
/// ```
/// # use futures::stream;
/// use serde_json::{Value, json};
/// use unbraid::{Completions, tools::{RunLimits, Tool, Tools, VisibleError, run_calls}};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let body = concat!(
/// #     r#"data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"time","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}"#,
/// #     "\n\ndata: [DONE]\n\n",
/// # );
/// # let bytes = stream::iter([Ok::<_, std::io::Error>(body)]);
/// let tools = Tools::new().with(Tool::new("time", "The time.", json!({ "type": "object" }), async |_: Value| {
///     Ok::<_, VisibleError>("noon")
/// }));
/// let choice = Completions::from_byte_stream(bytes).first().await?;
/// for result in run_calls(&choice, &tools, RunLimits::default()).await {
///     assert_eq!((result.call.id.as_deref(), &*result.text()), (Some("c1"), "noon")); // for the next request
/// }
/// # Ok(())
/// # }
/// ```
pub async fn run_calls(choice: &Choice, tools: &Tools, limits: RunLimits) -> Vec<ToolResult> {
    let permits = Semaphore::new(limits.concurrency.clamp(1, Semaphore::MAX_PERMITS));
    let run = Run {
        choice,
        tools,
        limits: &limits,
        permits: &permits,
    };
    let (mut calls, mut running) = (choice.tool_calls(), FuturesUnordered::new());
    let (mut results, mut is_open) = (Vec::new(), true);
    while is_open || !running.is_empty() {
        tokio::select! {
            call = calls.next(), if is_open => match call {
                Some(Ok(call)) => running.push(run.call(call)),
                // The error of the choice is the result of each call that it cut.
                Some(Err(_)) | None => is_open = false,
            },
            Some(result) = running.next(), if !running.is_empty() => results.extend(result),
        }
    }
    results.sort_by_key(|result: &ToolResult| result.call.call_index);
    results
}

#[derive(Clone, Copy)]
struct Run<'r> {
    choice: &'r Choice,
    tools: &'r Tools,
    limits: &'r RunLimits,
    permits: &'r Semaphore,
}

impl Run<'_> {
    /// Runs one call; `None` if it only repeats another one, or if nothing of it is left because its choice was discarded.
    async fn call(self, handle: ToolCallHandle) -> Option<ToolResult> {
        let call_index = handle.call_index();
        let is_legacy = handle.kind() == CallKind::LegacyFunction;
        let policy = if is_legacy {
            ReadyPolicy::AtEnd
        } else {
            self.limits.ready
        };
        let ready = handle.ready(policy).await;
        let is_kept = || {
            let calls = self.choice.snapshot().tool_calls;
            calls.iter().any(|call| call.call_index == call_index)
        };
        if is_legacy && !is_kept() {
            return None;
        }
        let output = match &ready {
            Ok(call) => self.ready_call(&handle, call, policy).await,
            Err(error) => Err(ToolError::Call(error.clone())),
        };
        if let Err(ToolError::Call(_)) = &output {
            // A late fragment is known before the end of the choice, and more of the call may follow.
            let _end: Result<ToolCall, JsonError> = handle.finished().await;
        }
        let call = handle.snapshot().or_else(|| ready.ok())?;
        Some(ToolResult { call, output })
    }

    /// Runs a call that is ready, and drops the tool if more of the call arrives.
    async fn ready_call(
        self,
        handle: &ToolCallHandle,
        call: &ToolCall,
        policy: ReadyPolicy,
    ) -> Result<String, ToolError> {
        let mut confirmed = pin!(handle.confirmed(policy));
        let mut tool = pin!(self.tool(handle, call));
        tokio::select! {
            biased;
            confirmed = &mut confirmed => match confirmed {
                Ok(_) => tool.await,
                Err(error) => Err(ToolError::Call(error)),
            },
            output = &mut tool => match confirmed.await {
                Ok(_) => output,
                Err(error) => Err(ToolError::Call(error)),
            },
        }
    }

    /// Runs the tool of a call when it is its turn.
    async fn tool(self, handle: &ToolCallHandle, call: &ToolCall) -> Result<String, ToolError> {
        let tool = self.tools.get(&call.name).ok_or(ToolError::UnknownTool)?;
        // The semaphore is never closed.
        let _permit = self.permits.acquire().await.ok();
        let repair = self.limits.repair;
        let work = AssertUnwindSafe(async { tool.start(call, repair).await }).catch_unwind();
        let caught = match self.limits.timeout {
            Some(after) => within(after, work).await?,
            None => work.await,
        };
        match caught {
            Ok(Ok(output)) => Ok(output),
            Ok(Err(Failure::Tool(error))) => Err(ToolError::failed(error)),
            Ok(Err(Failure::Arguments(kind))) => {
                let raw = call.arguments.as_str().into();
                let error = JsonError::new(handle.choice(), Some(call.call_index), raw, kind);
                Err(ToolError::Call(error))
            }
            Err(_panic) => Err(ToolError::Panicked),
        }
    }
}

/// Waits for the work, but not longer than this.
async fn within<W: Future>(after: Duration, work: W) -> Result<W::Output, ToolError> {
    if !has_time_driver() {
        return Err(ToolError::NoTimeDriver);
    }
    match tokio::time::timeout(after, work).await {
        Ok(output) => Ok(output),
        Err(_elapsed) => Err(ToolError::TimedOut { after }),
    }
}
