//! Parses a call's arguments, or any JSON that a model wrote, into a typed value.

use std::{fmt, sync::Arc};

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{
    CallKind, ChoiceEnd, EventIndex, ToolCall,
    json::{FieldError, PointerError, Repair, Verdict, check, check_cut, lone_surrogate, repair},
    tool_call::{Cut, cut_of},
};

/// Why JSON that a model wrote is not the requested value. It never shows the text.
///
/// # Examples
///
/// ```
/// use serde_json::Value;
/// use unbraid_core::{JsonErrorKind, parse_json};
///
/// let error = parse_json::<Value>("{\"a\":oops}").unwrap_err();
/// assert!(matches!(error, JsonErrorKind::Invalid { offset: 5 }));
/// assert_eq!(error.to_string(), "no JSON at byte 5");
/// ```
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum JsonErrorKind {
    /// The choice was cut before the text could end. Only the handles of the crate `unbraid` return it.
    #[error("{}", .0.reason())]
    Choice(#[from] crate::ChoiceError),
    /// More of the call arrived after it was ready by the [`ReadyPolicy`](crate::ReadyPolicy) (T27, T28). What was run with
    /// it may have been incomplete.
    #[error(
        "more of the call arrived in event {event_index}, after it was ready with {bytes} bytes of arguments"
    )]
    LateFragment {
        /// The length of the arguments when the call was ready.
        bytes: usize,
        /// The event that brought more.
        event_index: EventIndex,
    },
    /// The text is empty, or ends inside its value (J6, J7). After an end that cut the choice, a number is incomplete, too.
    #[error("the text ends inside its JSON, after {bytes} bytes")]
    Truncated {
        /// The length of the received text.
        bytes: usize,
    },
    /// The text needs a repair, and the caller requested none (J1 to J3, T22).
    #[error("the text is JSON only after a repair")]
    NeedsRepair,
    /// A string contains an escape of half a surrogate pair, which no Rust string can hold (J17). A repair replaces it
    /// by U+FFFD.
    #[error("a lone surrogate is escaped at byte {offset}: the text is JSON only after a repair")]
    LoneSurrogate {
        /// The byte offset of the escape.
        offset: usize,
    },
    /// Several values in a row (J12, T8).
    #[error("several JSON values in a row, the first too many at byte {offset}")]
    Concatenated {
        /// The byte offset of the first value too many.
        offset: usize,
    },
    /// Not JSON.
    #[error("no JSON at byte {offset}")]
    Invalid {
        /// The byte offset of the error.
        offset: usize,
    },
    /// Nested deeper than [`MAX_ARGUMENT_DEPTH`](crate::limits::MAX_ARGUMENT_DEPTH) (J16).
    #[error("nested too deep at byte {offset}")]
    TooDeep {
        /// The byte offset at which the level too many opens.
        offset: usize,
    },
    /// The input of a custom tool, which is text and not JSON.
    #[error("a custom tool's input is not JSON")]
    CustomTool,
    /// The call has no name, so it is unknown which tool it is for (T2, T18).
    #[error("the call has no name")]
    MissingName,
    /// JSON of another type than the requested one.
    #[error(transparent)]
    TypeMismatch(TypeMismatch),
    /// The field has no complete string.
    #[error(transparent)]
    Field(FieldError),
    /// The path to a field is not a JSON pointer.
    #[error(transparent)]
    Pointer(PointerError),
}

/// JSON of another type than the requested one. It has the position, but not the text.
///
/// # Examples
///
/// ```
/// use unbraid_core::{JsonErrorKind, parse_json};
///
/// let Err(JsonErrorKind::TypeMismatch(error)) = parse_json::<Vec<u8>>("[1,300]") else { panic!() };
/// assert_eq!(error.position(), (1, 6));
/// assert!(error.detail().contains("300"));
/// assert!(!error.to_string().contains("300"));
/// ```
#[derive(Clone)]
pub struct TypeMismatch(Arc<serde_json::Error>);

impl TypeMismatch {
    /// Returns the message of `serde`. It may quote the text, so do not log it.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_core::{JsonErrorKind, parse_json};
    ///
    /// let Err(JsonErrorKind::TypeMismatch(error)) = parse_json::<bool>("1") else { panic!() };
    /// assert!(error.detail().contains("expected a boolean"));
    /// ```
    #[must_use]
    pub fn detail(&self) -> String {
        self.0.to_string()
    }

    /// Returns the line and column in the parsed text, from 1; 0 if `serde` reports none.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_core::{JsonErrorKind, parse_json};
    ///
    /// let Err(JsonErrorKind::TypeMismatch(error)) = parse_json::<Vec<bool>>("[true,\n1]") else { panic!() };
    /// assert_eq!(error.position().0, 2);
    /// ```
    #[must_use]
    pub fn position(&self) -> (usize, usize) {
        (self.0.line(), self.0.column())
    }
}

impl fmt::Display for TypeMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (line, column) = self.position();
        write!(
            f,
            "the JSON has another shape than was asked for (line {line}, column {column})"
        )
    }
}

impl fmt::Debug for TypeMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "TypeMismatch({:?}, {:?})",
            self.0.classify(),
            self.position()
        )
    }
}

impl std::error::Error for TypeMismatch {}

/// Parses JSON that a model wrote. Text that was cut, or needs a repair, is an error.
///
/// An empty text, or white space alone, is [`JsonErrorKind::Truncated`]: only a call without arguments means an empty object
/// (T23), see [`ToolCall::parse`].
///
/// # Errors
///
/// A [`JsonErrorKind`] for text that is not valid JSON, and [`JsonErrorKind::TypeMismatch`] for JSON of another type.
///
/// # Examples
///
/// ```
/// use unbraid_core::{JsonErrorKind, parse_json};
///
/// let numbers: Vec<u8> = parse_json("[1,2]")?;
/// assert_eq!(numbers, [1, 2]);
/// assert!(matches!(parse_json::<Vec<u8>>("[1,2"), Err(JsonErrorKind::Truncated { bytes: 4 })));
/// assert!(matches!(parse_json::<Vec<u8>>(""), Err(JsonErrorKind::Truncated { bytes: 0 })));
/// assert!(matches!(parse_json::<Vec<u8>>("{}"), Err(JsonErrorKind::TypeMismatch(_))));
/// # Ok::<(), JsonErrorKind>(())
/// ```
pub fn parse_json<T: DeserializeOwned>(text: &str) -> Result<T, JsonErrorKind> {
    match check(text) {
        Verdict::Complete => deserialize(text),
        verdict => Err(error_of(verdict, text)),
    }
}

/// Parses JSON like [`parse_json`], after the allowed repairs.
///
/// Two repairs are always made, because they do not guess what the model meant: a `{}` placeholder before the value is
/// dropped (T22), and half a surrogate pair becomes U+FFFD (J17).
///
/// # Errors
///
/// Those of [`parse_json`], for text that no allowed repair makes valid.
///
/// # Examples
///
/// ```
/// use serde_json::Value;
/// use unbraid_core::{JsonErrorKind, json::Repair, parse_json, parse_json_repaired};
///
/// let raw = "{\"text\":\"two\nlines\"}";
/// assert!(matches!(parse_json::<Value>(raw), Err(JsonErrorKind::NeedsRepair)));
/// let value: Value = parse_json_repaired(raw, Repair::default())?;
/// assert_eq!(value["text"], "two\nlines");
/// # Ok::<(), JsonErrorKind>(())
/// ```
pub fn parse_json_repaired<T: DeserializeOwned>(
    text: &str,
    allowed: Repair,
) -> Result<T, JsonErrorKind> {
    let repaired = repair(text, allowed | Repair::LONE_SURROGATES);
    let text = &*repaired.text;
    match check(text) {
        Verdict::Complete => deserialize(text),
        Verdict::Repaired => match text.trim_start().strip_prefix("{}") {
            Some(value) => deserialize(value),
            None => Err(JsonErrorKind::NeedsRepair),
        },
        verdict => Err(error_of(verdict, text)),
    }
}

fn deserialize<T: DeserializeOwned>(text: &str) -> Result<T, JsonErrorKind> {
    serde_json::from_str(text)
        .map_err(|error| JsonErrorKind::TypeMismatch(TypeMismatch(Arc::new(error))))
}

fn error_of(verdict: Verdict, text: &str) -> JsonErrorKind {
    match verdict {
        Verdict::Truncated | Verdict::EmptyAsObject => {
            JsonErrorKind::Truncated { bytes: text.len() }
        }
        Verdict::Concatenated { offset } => JsonErrorKind::Concatenated { offset },
        Verdict::Invalid { offset } => JsonErrorKind::Invalid { offset },
        Verdict::TooDeep { offset } => JsonErrorKind::TooDeep { offset },
        Verdict::Complete | Verdict::Repaired => match lone_surrogate(text) {
            Some(offset) => JsonErrorKind::LoneSurrogate { offset },
            None => JsonErrorKind::NeedsRepair,
        },
    }
}

impl ToolCall {
    /// Parses the arguments into a typed value; see [`parse_json`].
    ///
    /// # Errors
    ///
    /// [`JsonErrorKind::MissingName`] for a call without a name, [`JsonErrorKind::CustomTool`] for the text of a
    /// custom tool, otherwise those of [`parse_json`]. A missing id is not an error here, since the arguments are
    /// complete without it. Absent arguments are an empty object only once the choice has ended by itself. Before
    /// that, and if it was cut, they are [`JsonErrorKind::Truncated`].
    ///
    /// # Examples
    ///
    /// ```
    /// # use unbraid_core::{ChoiceIndex, Demux, Config};
    /// # let mut demux = Demux::new(Config::default());
    /// # demux.feed(br#"data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"add","arguments":"{\"a\":1}"}}]}}]}"#);
    /// # demux.feed(b"\n\ndata: [DONE]\n\n");
    /// let message = demux.choice(ChoiceIndex(0)).unwrap().message();
    /// let arguments: serde_json::Value = message.tool_calls[0].parse()?;
    /// assert_eq!(arguments["a"], 1);
    /// # Ok::<(), unbraid_core::JsonErrorKind>(())
    /// ```
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, JsonErrorKind> {
        parse_json(self.json()?)
    }

    /// Parses the arguments into a typed value after the allowed repairs. The raw text stays unchanged.
    ///
    /// # Errors
    ///
    /// Those of [`parse`](Self::parse), for text that no allowed repair makes valid.
    ///
    /// # Examples
    ///
    /// ```
    /// # use unbraid_core::{ChoiceIndex, Demux, Config};
    /// use unbraid_core::json::Repair;
    ///
    /// # let mut demux = Demux::new(Config::default());
    /// # demux.feed(br#"data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"add","arguments":"{\"a\":\"x\ny\"}"}}]}}]}"#);
    /// # demux.feed(b"\n\ndata: [DONE]\n\n");
    /// let message = demux.choice(ChoiceIndex(0)).unwrap().message();
    /// let arguments: serde_json::Value = message.tool_calls[0].parse_repaired(Repair::CONTROLS)?;
    /// assert_eq!(arguments["a"], "x\ny");
    /// # Ok::<(), unbraid_core::JsonErrorKind>(())
    /// ```
    pub fn parse_repaired<T: DeserializeOwned>(&self, allowed: Repair) -> Result<T, JsonErrorKind> {
        parse_json_repaired(self.json()?, allowed)
    }

    /// Returns the arguments as a value, if they are complete without a repair.
    ///
    /// # Examples
    ///
    /// ```
    /// # use unbraid_core::{ChoiceIndex, Demux, Config};
    /// # let mut demux = Demux::new(Config::default());
    /// # demux.feed(br#"data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"add","arguments":"{\"a\":1}"}}]}}]}"#);
    /// # demux.feed(b"\n\ndata: [DONE]\n\n");
    /// let message = demux.choice(ChoiceIndex(0)).unwrap().message();
    /// assert_eq!(message.tool_calls[0].value().unwrap()["a"], 1);
    /// ```
    #[must_use]
    pub fn value(&self) -> Option<Value> {
        self.parse().ok()
    }

    /// What is wrong with arguments whose status is a fault.
    pub(crate) fn fault_kind(&self) -> JsonErrorKind {
        error_of(self.verdict(), &self.arguments)
    }

    fn json(&self) -> Result<&str, JsonErrorKind> {
        if self.kind == CallKind::Custom {
            return Err(JsonErrorKind::CustomTool);
        }
        if self.name.is_empty() {
            return Err(JsonErrorKind::MissingName);
        }
        if self.lacks_arguments() {
            return Err(JsonErrorKind::Truncated {
                bytes: self.arguments.len(),
            });
        }
        // T23: a call without arguments.
        let is_empty = self.arguments.trim().is_empty();
        Ok(if is_empty { "{}" } else { &self.arguments })
    }
}

/// Whether content may be incomplete although it is JSON by itself: its choice was cut, and the missing rest may have continued
/// a number.
pub(crate) fn may_continue(content: &str, end: &ChoiceEnd) -> bool {
    cut_of(end) != Cut::None
        && check_cut(content) == Verdict::Truncated
        && check(content) == Verdict::Complete
}

#[cfg(test)]
mod tests;
