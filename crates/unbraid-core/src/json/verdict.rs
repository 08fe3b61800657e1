//! What a text was found to be.

/// Whether a text is JSON, if it ends here.
///
/// # Examples
///
/// ```
/// use unbraid_core::json::{Verdict, check};
///
/// assert_eq!(check(" "), Verdict::EmptyAsObject);
/// assert_eq!(check("[1,2]"), Verdict::Complete);
/// assert_eq!(check("[1,2"), Verdict::Truncated);
/// assert_eq!(check("[1][2]"), Verdict::Concatenated { offset: 3 });
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Verdict {
    /// A single JSON value.
    Complete,
    /// Nothing or only white space, which stands for a call without arguments (T23).
    EmptyAsObject,
    /// JSON, except that its strings contain raw control characters (J1 to J3) or halves of surrogate pairs (J17), or
    /// that it follows a `{}` placeholder (T22).
    Repaired,
    /// The text ends inside the value (J6, J7). So does a number or an escape that lacks a digit.
    Truncated,
    /// Several values in a row (J12).
    Concatenated {
        /// The byte offset of the first value too many.
        offset: usize,
    },
    /// Not JSON, whatever text might follow.
    Invalid {
        /// The byte offset of the error. After a complete value, it is the offset of the value that is cut.
        offset: usize,
    },
    /// An array or object is nested deeper than [`MAX_ARGUMENT_DEPTH`](crate::limits::MAX_ARGUMENT_DEPTH) (J16).
    TooDeep {
        /// The byte offset at which it opens.
        offset: usize,
    },
}
