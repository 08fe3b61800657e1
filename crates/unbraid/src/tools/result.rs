//! `ToolResult` and `ToolError`: what became of a call, for the caller and for the model.

use std::{borrow::Cow, error::Error as StdError, fmt, sync::Arc, time::Duration};

use unbraid_core::{BoxError, JsonErrorKind, ToolCall};

use crate::error::JsonError;

/// What became of one call.
///
/// # Examples
///
/// ```
/// use unbraid::tools::{ToolError, ToolResult};
///
/// fn log(result: &ToolResult) {
///     match &result.output {
///         Ok(_) => println!("call {}: {} bytes", result.call.call_index, result.text().len()),
///         Err(error) => println!("call {}: {error}; the model reads: {}", result.call.call_index, result.text()),
///     }
/// }
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct ToolResult {
    /// The call, as it was at the end of its choice: with its id, which the message with the result repeats, and with
    /// everything of it that arrived.
    pub call: ToolCall,
    /// The output of the tool, or why there is none.
    pub output: Result<String, ToolError>,
}

impl ToolResult {
    /// The text for the model: the output, or a sentence on what went wrong, which begins with `error: `.
    ///
    /// The sentence contains nothing of the tool, of its error or of a panic. An exception is a [`VisibleError`], whose
    /// message it contains.
    ///
    /// # Examples
    ///
    /// See [`ToolResult`].
    #[must_use]
    pub fn text(&self) -> Cow<'_, str> {
        match &self.output {
            Ok(text) => Cow::Borrowed(text),
            Err(error) => Cow::Owned(format!("error: {}", error.for_model())),
        }
    }
}

/// The output is shown as its length, because it is payload.
impl fmt::Debug for ToolResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolResult")
            .field("call", &self.call)
            .field("output", &self.output.as_ref().map(String::len))
            .finish()
    }
}

/// Why a call has no output. `Display` never contains payload.
///
/// # Examples
///
/// ```
/// use unbraid::tools::{ToolError, ToolResult};
///
/// /// Whether the same call may succeed if it is repeated.
/// fn is_temporary(result: &ToolResult) -> bool {
///     matches!(result.output, Err(ToolError::TimedOut { .. }))
/// }
/// ```
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ToolError {
    /// No tool has the name of the call (T44).
    #[error("there is no tool of this name")]
    UnknownTool,
    /// The call cannot be run: it was cut, is not JSON, has other arguments than the tool takes, or was ready too early. In
    /// the last case the kind is [`JsonErrorKind::LateFragment`], and the tool may have been running.
    #[error(transparent)]
    Call(JsonError),
    /// The tool returned an error, which is the [`source`](StdError::source).
    #[error("the tool failed")]
    Failed(#[source] Failed),
    /// The tool panicked.
    #[error("the tool panicked")]
    Panicked,
    /// The tool did not end in time, and was dropped.
    #[error("the tool did not end within {after:?}")]
    TimedOut {
        /// The [`timeout`](super::RunLimits::timeout).
        after: Duration,
    },
    /// There is a timeout, but the runtime has no time driver.
    #[error("a timeout was requested, but the runtime has no time driver")]
    NoTimeDriver,
}

impl ToolError {
    pub(super) fn failed(error: BoxError) -> Self {
        Self::Failed(Failed(Arc::new(error)))
    }

    /// What the model reads: what it can correct itself, and nothing about the inside of the tool.
    fn for_model(&self) -> Cow<'_, str> {
        match self {
            Self::UnknownTool => "there is no tool of this name".into(),
            Self::Call(error) => of_call(error.kind()),
            Self::Failed(failed) => failed.for_model().into(),
            Self::Panicked | Self::NoTimeDriver => TOOL_FAILED.into(),
            Self::TimedOut { .. } => "the tool did not answer in time".into(),
        }
    }
}

const TOOL_FAILED: &str = "the tool failed";

fn of_call(kind: &JsonErrorKind) -> Cow<'static, str> {
    match kind {
        JsonErrorKind::TypeMismatch(error) => {
            let (line, column) = error.position();
            format!(
                "the arguments do not fit the parameters of the tool (line {line}, column {column})"
            )
            .into()
        }
        JsonErrorKind::CustomTool => "the tool takes JSON arguments".into(),
        JsonErrorKind::MissingName => "the call has no name".into(),
        JsonErrorKind::Choice(_) | JsonErrorKind::LateFragment { .. } => {
            "the call was not complete".into()
        }
        kind => format!("the arguments are not valid JSON: {kind}").into(),
    }
}

/// The error that a tool returned. `Display` and `Debug` do not show it; [`get`](Self::get) returns it.
///
/// # Examples
///
/// ```
/// use unbraid::tools::{ToolError, ToolResult};
///
/// fn log(result: &ToolResult) {
///     if let Err(ToolError::Failed(failed)) = &result.output {
///         eprintln!("call {}: {}", result.call.call_index, failed.get());
///     }
/// }
/// ```
#[derive(Clone)]
pub struct Failed(Arc<BoxError>);

impl Failed {
    /// The error itself, which may contain anything.
    #[must_use]
    pub fn get(&self) -> &(dyn StdError + Send + Sync + 'static) {
        &**self.0
    }

    fn for_model(&self) -> &str {
        let visible = self.0.downcast_ref::<VisibleError>();
        visible.map_or(TOOL_FAILED, |visible| &visible.0)
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an error of the tool")
    }
}

impl fmt::Debug for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Failed")
    }
}

impl StdError for Failed {}

/// An error of a tool whose message the model reads, so that it can correct its call.
///
/// # Examples
///
/// ```
/// use unbraid::tools::VisibleError;
///
/// let error = VisibleError::new("the date is in the past");
/// assert_eq!(error.to_string(), "the date is in the past");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VisibleError(String);

impl VisibleError {
    /// Creates an error with this message.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl fmt::Display for VisibleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl StdError for VisibleError {}
