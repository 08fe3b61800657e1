//! One string of the arguments, as the model types it.

use super::{Pointer, Verdict, scan::Scanner};

mod walk;

use walk::{Place, Walk, Walker};

/// Finds the string that a pointer names and gives its decoded text from the first character on (J22).
///
/// It keeps none of the text: feed it the arguments again from the beginning and it gives the same. A path leads
/// through the first of duplicate keys only, since what was typed cannot be taken back; half an escape is held back until
/// the rest has come; a lone surrogate becomes U+FFFD (J17). Behind a `{}` placeholder it starts again (T22).
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
/// Arguments that end without the field say so:
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

/// What is known of a field so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FieldState {
    /// It may still come.
    Waiting,
    /// Its string has begun.
    Typing,
    /// Its string has come in whole.
    Done,
    /// A value stands there, and it is no string.
    NotAString,
    /// Nothing stands there, and nothing can come any more.
    Absent,
    /// The text is no JSON, so nothing more can be read of the field.
    Invalid,
}

/// Why a field has no whole string.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum FieldError {
    /// The arguments are whole and have no such value.
    #[error("the arguments have no such field")]
    Absent,
    /// A value stands there, and it is no string.
    #[error("the field is no string")]
    NotAString,
    /// The arguments end before the field does, or before it comes.
    #[error("the arguments end before the field")]
    Cut,
    /// The arguments are no JSON, or too deep, before the field ends.
    #[error("the arguments are no JSON at byte {offset}")]
    Invalid {
        /// Where the offence stands.
        offset: usize,
    },
}

impl Field {
    /// A field at the start of the arguments.
    #[must_use]
    pub fn new(pointer: Pointer) -> Self {
        Self {
            pointer,
            scanner: Scanner::default(),
            walk: Walk::START,
        }
    }

    /// Reads the next fragment and gives the text of the field in it: in several pieces or none, and none is empty.
    ///
    /// Once the field is settled, the rest is not even looked at.
    pub fn feed(&mut self, fragment: &str, typed: &mut dyn FnMut(&str)) {
        match self.state() {
            FieldState::Waiting | FieldState::Typing => {}
            FieldState::Done
            | FieldState::NotAString
            | FieldState::Absent
            | FieldState::Invalid => return,
        }
        let mut visitor = Walker {
            pointer: &self.pointer,
            walk: &mut self.walk,
            typed,
        };
        self.scanner.feed(fragment, &mut visitor);
    }

    /// What is known so far.
    #[must_use]
    pub fn state(&self) -> FieldState {
        // A `{}` that a real value may still follow settles nothing (T22).
        let open = !self.scanner.may_be_placeholder();
        match self.walk.place {
            Place::Done => FieldState::Done,
            Place::NotAString if open => FieldState::NotAString,
            Place::Absent if open => FieldState::Absent,
            _ if self.scanner.has_failed() => FieldState::Invalid,
            Place::Typing => FieldState::Typing,
            Place::Value
            | Place::Object
            | Place::Key { .. }
            | Place::Array { .. }
            | Place::Beside { .. }
            | Place::NotAString
            | Place::Absent => FieldState::Waiting,
        }
    }

    /// Says that no text follows, and how the field ended.
    ///
    /// # Errors
    ///
    /// Anything but a whole string; arguments that are empty are an object without fields (T23).
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
        match self.walk.place {
            Place::Done => return Ok(()),
            Place::NotAString => return Err(FieldError::NotAString),
            Place::Absent => return Err(FieldError::Absent),
            Place::Value
            | Place::Object
            | Place::Key { .. }
            | Place::Array { .. }
            | Place::Beside { .. }
            | Place::Typing => {}
        }
        Err(match self.scanner.judged() {
            Verdict::Invalid { offset } | Verdict::TooDeep { offset } => {
                FieldError::Invalid { offset }
            }
            Verdict::EmptyAsObject => FieldError::Absent,
            Verdict::Truncated => FieldError::Cut,
            // An outermost number or literal that only the text's end delimits.
            Verdict::Complete | Verdict::Repaired | Verdict::Concatenated { .. } => {
                self.bare_word()
            }
        })
    }

    fn bare_word(&self) -> FieldError {
        match self.pointer.step(0) {
            None => FieldError::NotAString,
            Some(_) => FieldError::Absent,
        }
    }
}
