//! What arguments turn out to be.

use super::{scan::Scanner, token::Deaf};

/// What a text is, if it ends where it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Verdict {
    /// One JSON value.
    Complete,
    /// Nothing, or white space: a call without arguments (T23).
    EmptyAsObject,
    /// JSON but for raw control characters (J1 to J3) or halves of surrogate pairs (J17) in its strings, or behind a `{}`
    /// placeholder (T22).
    Repaired,
    /// The text ends inside the value (J6, J7), a number or an escape that lacks a digit included.
    Truncated,
    /// Several values in a row (J12).
    Concatenated {
        /// Where the first value too many begins.
        offset: usize,
    },
    /// No JSON before the text's end.
    Invalid {
        /// The byte that fits nowhere; behind other values, where a value that is cut begins.
        offset: usize,
    },
    /// An array or object lies deeper than [`MAX_ARGUMENT_DEPTH`](crate::limits::MAX_ARGUMENT_DEPTH) (J16).
    TooDeep {
        /// Where it opens.
        offset: usize,
    },
}

/// Judges a text that has come in whole, in one pass.
///
/// The escape of half a surrogate pair is a repair (J17): `serde_json` refuses it, and [`Partial`](super::Partial) and
/// [`Repair::LONE_SURROGATES`](super::Repair::LONE_SURROGATES) put U+FFFD in its place.
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
    scanner.feed(text, &mut Deaf);
    scanner.judged()
}

/// As [`check`], for a text that something cut where it ends: no text at all, and a number that nothing delimits, are
/// [`Verdict::Truncated`], because more of them may have been on its way.
pub(crate) fn judge_cut(text: &str) -> Verdict {
    let mut scanner = Scanner::default();
    scanner.feed(text, &mut Deaf);
    scanner.judged_cut()
}

/// Where the first escape of half a surrogate pair begins whose other half is missing (J17).
pub(crate) fn lone_surrogate(text: &str) -> Option<usize> {
    let mut scanner = Scanner::default();
    scanner.feed(text, &mut Deaf);
    scanner.lone()
}
