//! Checks whether a text that has ended is JSON.

use super::{scan::Scanner, token::NullListener};

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

/// Checks a complete text in one pass.
///
/// An escape of half a surrogate pair counts as a repair (J17): `serde_json` refuses it, and
/// [`Partial`](super::Partial) and [`Repair::LONE_SURROGATES`](super::Repair::LONE_SURROGATES) replace it by U+FFFD.
///
/// # Examples
///
/// ```
/// use unbraid_core::json::{Verdict, check};
///
/// assert_eq!(check("{\"city\":\"Oslo\"}"), Verdict::Complete);
/// assert_eq!(check("{\"city\":\"Os"), Verdict::Truncated);
/// assert_eq!(check("{\"city\":Oslo}"), Verdict::Invalid { offset: 8 });
/// ```
#[must_use]
pub fn check(text: &str) -> Verdict {
    let mut scanner = Scanner::default();
    scanner.feed(text, &mut NullListener);
    scanner.verdict()
}

/// Checks a text that was cut at its end. Unlike in [`check`], an empty text and a number at the end are
/// [`Verdict::Truncated`], because the missing rest may have continued them.
pub(crate) fn check_cut(text: &str) -> Verdict {
    let mut scanner = Scanner::default();
    scanner.feed(text, &mut NullListener);
    scanner.verdict_if_cut()
}

/// Scans the next fragment of a text of which only the verdict matters.
pub(crate) fn feed_scanner(scanner: &mut Scanner, fragment: &str) {
    scanner.feed(fragment, &mut NullListener);
}

/// The offset of the first escape of a surrogate without its other half (J17).
pub(crate) fn lone_surrogate(text: &str) -> Option<usize> {
    let mut scanner = Scanner::default();
    scanner.feed(text, &mut NullListener);
    scanner.lone_surrogate()
}
