//! Checks whether a text that has ended is JSON.

use super::{scan::Scanner, token::NullListener, verdict::Verdict};

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
