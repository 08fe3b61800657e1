//! Yields one string of JSON while it is being received.

use super::{Pointer, Verdict, scan::Scanner};

mod walk;

use walk::{Walk, WalkListener, WalkState};

/// Finds the string that a pointer refers to, and yields its decoded text from the first character on.
///
/// It keeps none of the text: feeding the same text again to a new `Field` yields the same. Of duplicate keys the
/// pointer follows the first, since text that was yielded cannot be taken back. Half an escape is held back until the
/// rest is received, and a lone surrogate becomes U+FFFD (J17). After a `{}` placeholder the search starts again
/// (T22).
///
/// # Examples
///
/// ```
/// use unbraid_core::json::{Field, FieldState, Pointer};
///
/// let mut field = Field::new(Pointer::parse("/answer")?);
/// let mut shown = String::new();
/// for fragment in ["{\"answ", "er\":\"caf\\u00", "e9\\n", "ol", "é\"}"] {
///     field.feed(fragment, &mut |text| shown.push_str(text));
/// }
/// assert_eq!(shown, "café\nolé");
/// assert_eq!(field.state(), FieldState::Done);
/// assert_eq!(field.finish(), Ok(()));
/// # Ok::<(), unbraid_core::json::PointerError>(())
/// ```
///
/// Text that ends without the field is an error:
///
/// ```
/// use unbraid_core::json::{Field, FieldError, Pointer};
///
/// let mut field = Field::new(Pointer::parse("/answer")?);
/// field.feed("{\"question\":\"why?\"}", &mut |_| unreachable!());
/// assert_eq!(field.finish(), Err(FieldError::Absent));
/// # Ok::<(), unbraid_core::json::PointerError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Field {
    pointer: Pointer,
    scanner: Scanner,
    walk: Walk,
}

/// The state of a field while its text is received.
///
/// # Examples
///
/// ```
/// use unbraid_core::json::{Field, FieldState, Pointer};
///
/// let mut field = Field::new(Pointer::parse("/answer")?);
/// assert_eq!(field.state(), FieldState::Waiting);
/// field.feed("{\"answer\":\"Ye", &mut |_| ());
/// assert_eq!(field.state(), FieldState::Typing);
/// field.feed("s\"", &mut |_| ());
/// assert_eq!(field.state(), FieldState::Done);
/// # Ok::<(), unbraid_core::json::PointerError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FieldState {
    /// The field may still follow.
    Waiting,
    /// The string has begun.
    Typing,
    /// The string is complete.
    Done,
    /// The field's value is not a string.
    NotAString,
    /// There is no such field, and none can follow.
    Absent,
    /// The text is not JSON, so the field cannot be read any further.
    Invalid,
}

/// Why a field has no complete string.
///
/// # Examples
///
/// ```
/// use unbraid_core::json::{Field, FieldError, Pointer};
///
/// let mut field = Field::new(Pointer::parse("/answer")?);
/// field.feed("{\"answer\":42}", &mut |_| ());
/// assert_eq!(field.finish(), Err(FieldError::NotAString));
/// # Ok::<(), unbraid_core::json::PointerError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum FieldError {
    /// The text is complete and has no such field.
    #[error("the text has no such field")]
    Absent,
    /// The field's value is not a string.
    #[error("the field is not a string")]
    NotAString,
    /// The text ends before the field does, or before it begins.
    #[error("the text ends before the field")]
    Cut,
    /// The text is not JSON, or nested too deep, before the field ends.
    #[error("the text is not JSON at byte {offset}")]
    Invalid {
        /// The byte offset of the error.
        offset: usize,
    },
}

impl Field {
    /// Creates a field at the start of the text.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_core::json::{Field, FieldState, Pointer};
    ///
    /// let field = Field::new(Pointer::parse("/steps/0")?);
    /// assert_eq!(field.state(), FieldState::Waiting);
    /// # Ok::<(), unbraid_core::json::PointerError>(())
    /// ```
    #[must_use]
    pub fn new(pointer: Pointer) -> Self {
        Self {
            pointer,
            scanner: Scanner::default(),
            walk: Walk::START,
        }
    }

    /// Reads the next fragment and yields the field's text in it, in any number of non-empty parts.
    ///
    /// Once the state is final, further fragments are not scanned.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_core::json::{Field, Pointer};
    ///
    /// let mut field = Field::new(Pointer::parse("/a")?);
    /// let mut text = String::new();
    /// for fragment in ["{\"a\":\"on", "e\",\"b\":\"two\"}"] {
    ///     field.feed(fragment, &mut |part| text.push_str(part));
    /// }
    /// assert_eq!(text, "one");
    /// # Ok::<(), unbraid_core::json::PointerError>(())
    /// ```
    pub fn feed(&mut self, fragment: &str, on_text: &mut dyn FnMut(&str)) {
        match self.state() {
            FieldState::Waiting | FieldState::Typing => {}
            FieldState::Done
            | FieldState::NotAString
            | FieldState::Absent
            | FieldState::Invalid => return,
        }
        let mut listener = WalkListener {
            pointer: &self.pointer,
            walk: &mut self.walk,
            on_text,
        };
        self.scanner.feed(fragment, &mut listener);
    }

    /// Returns the state of the field.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_core::json::{Field, FieldState, Pointer};
    ///
    /// let mut field = Field::new(Pointer::parse("/a")?);
    /// field.feed("{\"b\":1}", &mut |_| ());
    /// assert_eq!(field.state(), FieldState::Absent);
    /// # Ok::<(), unbraid_core::json::PointerError>(())
    /// ```
    #[must_use]
    pub fn state(&self) -> FieldState {
        // A `{}` is not final while another value may still replace it (T22).
        let is_final = !self.scanner.may_be_placeholder();
        match self.walk.state {
            WalkState::Done => FieldState::Done,
            WalkState::NotAString if is_final => FieldState::NotAString,
            WalkState::Absent if is_final => FieldState::Absent,
            _ if self.scanner.has_failed() => FieldState::Invalid,
            WalkState::Typing => FieldState::Typing,
            WalkState::Value
            | WalkState::Object
            | WalkState::Key { .. }
            | WalkState::Array { .. }
            | WalkState::Skipping { .. }
            | WalkState::NotAString
            | WalkState::Absent => FieldState::Waiting,
        }
    }

    /// Ends the text, and returns how the field ended.
    ///
    /// # Errors
    ///
    /// The field is not a complete string. An empty text counts as an object without fields (T23).
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_core::json::{Field, FieldError, Pointer};
    ///
    /// let mut field = Field::new(Pointer::parse("/answer")?);
    /// field.feed("{\"answer\":\"Ye", &mut |text| assert_eq!(text, "Ye"));
    /// assert_eq!(field.finish(), Err(FieldError::Cut));
    /// # Ok::<(), unbraid_core::json::PointerError>(())
    /// ```
    pub fn finish(&self) -> Result<(), FieldError> {
        match self.walk.state {
            WalkState::Done => return Ok(()),
            WalkState::NotAString => return Err(FieldError::NotAString),
            WalkState::Absent => return Err(FieldError::Absent),
            WalkState::Value
            | WalkState::Object
            | WalkState::Key { .. }
            | WalkState::Array { .. }
            | WalkState::Skipping { .. }
            | WalkState::Typing => {}
        }
        Err(match self.scanner.verdict() {
            Verdict::Invalid { offset } | Verdict::TooDeep { offset } => {
                FieldError::Invalid { offset }
            }
            Verdict::EmptyAsObject => FieldError::Absent,
            Verdict::Truncated => FieldError::Cut,
            // An outermost number or literal, delimited only by the text's end.
            Verdict::Complete | Verdict::Repaired | Verdict::Concatenated { .. } => {
                self.outermost_word()
            }
        })
    }

    fn outermost_word(&self) -> FieldError {
        match self.pointer.token(0) {
            None => FieldError::NotAString,
            Some(_) => FieldError::Absent,
        }
    }
}
