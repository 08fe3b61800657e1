//! A call's arguments, or any JSON that a model wrote, as a typed value.

use std::{fmt, sync::Arc};

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{
    CallKind, ToolCall,
    json::{FieldError, PointerError, Repair, Verdict, check, lone_surrogate, repair},
};

/// Why JSON that a model wrote is not what was asked for. It never shows the text.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum JsonErrorKind {
    /// The choice was cut before the text could end. Only the handles of `unbraid` report it.
    #[error("{}", .0.reason())]
    Choice(#[from] crate::ChoiceError),
    /// The text ends inside its value (J6, J7).
    #[error("the text ends inside its JSON, after {bytes} bytes")]
    Truncated {
        /// How many bytes had come.
        bytes: usize,
    },
    /// The text needs a repair, and none was asked for (J1 to J3, T22).
    #[error("the text is JSON only after a repair")]
    NeedsRepair,
    /// A string holds the escape of half a surrogate pair, which no text can hold (J17); a repair puts U+FFFD in its place.
    #[error("a lone surrogate is escaped at byte {offset}: the text is JSON only after a repair")]
    LoneSurrogate {
        /// Where the escape begins.
        offset: usize,
    },
    /// Several values in a row (J12, T8).
    #[error("several JSON values in a row, the first too many at byte {offset}")]
    Concatenated {
        /// Where the first value too many begins.
        offset: usize,
    },
    /// No JSON.
    #[error("no JSON at byte {offset}")]
    Invalid {
        /// The byte that fits nowhere.
        offset: usize,
    },
    /// Nested beyond [`MAX_ARGUMENT_DEPTH`](crate::limits::MAX_ARGUMENT_DEPTH) (J16).
    #[error("nested too deep at byte {offset}")]
    TooDeep {
        /// Where the level beyond opens.
        offset: usize,
    },
    /// A custom tool's input is text and no JSON (T31).
    #[error("a custom tool's input is no JSON")]
    CustomTool,
    /// No name ever came, so nobody knows which tool is meant (T2, T18).
    #[error("the call has no name")]
    MissingName,
    /// JSON, but not of the type that was asked for.
    #[error(transparent)]
    TypeMismatch(TypeMismatch),
    /// A field has no whole string.
    #[error(transparent)]
    Field(FieldError),
    /// The path to a field is no JSON pointer.
    #[error(transparent)]
    Pointer(PointerError),
}

/// JSON of another shape than was asked for: where, but not what.
#[derive(Clone)]
pub struct TypeMismatch(Arc<serde_json::Error>);

impl TypeMismatch {
    /// What serde says of it. It may quote the text: show it to no log.
    #[must_use]
    pub fn detail(&self) -> String {
        self.0.to_string()
    }

    /// Line and column in the text that was parsed, from 1; 0 where serde names none.
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

/// Parses JSON that a model wrote, strictly: what was cut, or needs a repair, is an error.
///
/// Nothing but white space is an empty object (T23).
///
/// # Errors
///
/// [`JsonErrorKind`], by what the text is; [`JsonErrorKind::TypeMismatch`] if it is JSON of another shape.
///
/// # Examples
///
/// ```
/// use unbraid_core::{JsonErrorKind, parse_json};
///
/// let numbers: Vec<u8> = parse_json("[1,2]")?;
/// assert_eq!(numbers, [1, 2]);
/// assert!(matches!(parse_json::<Vec<u8>>("[1,2"), Err(JsonErrorKind::Truncated { bytes: 4 })));
/// assert!(matches!(parse_json::<Vec<u8>>("{}"), Err(JsonErrorKind::TypeMismatch(_))));
/// # Ok::<(), JsonErrorKind>(())
/// ```
pub fn parse_json<T: DeserializeOwned>(text: &str) -> Result<T, JsonErrorKind> {
    match check(text) {
        Verdict::Complete => shaped(text),
        Verdict::EmptyAsObject => shaped("{}"),
        judged => Err(fault(judged, text)),
    }
}

/// As [`parse_json`], after the repairs that are allowed.
///
/// Whatever the set holds, a `{}` placeholder before the value is dropped (T22), and half a surrogate pair is U+FFFD (J17):
/// neither leaves a choice of what the model may have meant.
///
/// # Errors
///
/// As [`parse_json`], for what no allowed repair mends.
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
        Verdict::Complete => shaped(text),
        Verdict::EmptyAsObject => shaped("{}"),
        Verdict::Repaired => match text.trim_start().strip_prefix("{}") {
            Some(value) => shaped(value),
            None => Err(JsonErrorKind::NeedsRepair),
        },
        judged => Err(fault(judged, text)),
    }
}

fn shaped<T: DeserializeOwned>(text: &str) -> Result<T, JsonErrorKind> {
    serde_json::from_str(text)
        .map_err(|error| JsonErrorKind::TypeMismatch(TypeMismatch(Arc::new(error))))
}

fn fault(judged: Verdict, text: &str) -> JsonErrorKind {
    match judged {
        Verdict::Truncated => JsonErrorKind::Truncated { bytes: text.len() },
        Verdict::Concatenated { offset } => JsonErrorKind::Concatenated { offset },
        Verdict::Invalid { offset } => JsonErrorKind::Invalid { offset },
        Verdict::TooDeep { offset } => JsonErrorKind::TooDeep { offset },
        Verdict::Complete | Verdict::EmptyAsObject | Verdict::Repaired => {
            match lone_surrogate(text) {
                Some(offset) => JsonErrorKind::LoneSurrogate { offset },
                None => JsonErrorKind::NeedsRepair,
            }
        }
    }
}

impl ToolCall {
    /// The arguments as a typed value, strictly; see [`parse_json`].
    ///
    /// # Errors
    ///
    /// [`JsonErrorKind::MissingName`] for a call without a name, [`JsonErrorKind::CustomTool`] for a custom tool's text, else as
    /// [`parse_json`]. A missing id is not an error here: the arguments are whole. No arguments at all are an empty object
    /// only once the choice has ended by itself: before that, and where it was cut, they are [`JsonErrorKind::Truncated`].
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

    /// The arguments as a typed value after the allowed repairs; the raw text stays as it is (D15).
    ///
    /// # Errors
    ///
    /// As [`parse`](Self::parse), for what no allowed repair mends.
    pub fn parse_repaired<T: DeserializeOwned>(&self, allowed: Repair) -> Result<T, JsonErrorKind> {
        parse_json_repaired(self.json()?, allowed)
    }

    /// The arguments as a value, if they are whole as they came.
    #[must_use]
    pub fn value(&self) -> Option<Value> {
        self.parse().ok()
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
        Ok(&self.arguments)
    }
}

#[cfg(test)]
mod tests;
