//! Repairs text that is nearly JSON, and leaves the raw text unchanged.

use std::{
    borrow::Cow,
    fmt,
    ops::{BitOr, BitOrAssign},
};

use super::{Verdict, scan::Scanner, token::NullListener};

mod rewrite;

use rewrite::Rewrite;

/// A set of repairs: those that are allowed, or those that were made.
///
/// The default is only [`CONTROLS`](Self::CONTROLS), because all others guess what the model meant.
///
/// # Examples
///
/// ```
/// use unbraid_core::json::Repair;
///
/// let allowed = Repair::default() | Repair::ESCAPES;
/// assert!(allowed.contains(Repair::CONTROLS));
/// assert!(!allowed.contains(Repair::CLOSE));
/// assert_eq!(format!("{allowed:?}"), "CONTROLS | ESCAPES");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Repair(u8);

impl Repair {
    /// No repair.
    pub const NONE: Self = Self(0);
    /// Escapes raw control characters in a string, and a backslash before one (J1 to J3).
    pub const CONTROLS: Self = Self(1);
    /// Escapes the backslash of an escape that JSON does not have: `\d`, `\'`, `\u12`.
    pub const ESCAPES: Self = Self(1 << 1);
    /// Replaces an escape outside strings by the white space that it stands for: `\n`, `\r`, `\t`.
    pub const LITERAL_NEWLINES: Self = Self(1 << 2);
    /// Closes the arrays and objects that are open at the end, if no string, number or literal was cut and the rest is
    /// valid (J7). A number at the end may have been cut, so nothing is closed after it. An array may have been cut
    /// between two items, which cannot be detected.
    pub const CLOSE: Self = Self(1 << 3);
    /// Replaces a lone surrogate by U+FFFD, since `serde_json` refuses it (J17).
    pub const LONE_SURROGATES: Self = Self(1 << 4);
    /// Every repair.
    pub const ALL: Self = Self((1 << 5) - 1);

    /// Returns whether all of these repairs are in the set.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_core::json::Repair;
    ///
    /// assert!(Repair::ALL.contains(Repair::CLOSE | Repair::ESCAPES));
    /// assert!(!Repair::default().contains(Repair::CLOSE));
    /// ```
    #[must_use]
    pub const fn contains(self, repairs: Self) -> bool {
        self.0 & repairs.0 == repairs.0
    }

    /// Returns whether the set is empty.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_core::json::Repair;
    ///
    /// assert!(Repair::NONE.is_empty());
    /// assert!(!Repair::default().is_empty());
    /// ```
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl Default for Repair {
    fn default() -> Self {
        Self::CONTROLS
    }
}

impl BitOr for Repair {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Repair {
    fn bitor_assign(&mut self, other: Self) {
        *self = *self | other;
    }
}

impl fmt::Debug for Repair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for (repair, name) in NAMES {
            if self.contains(repair) {
                write!(f, "{separator}{name}")?;
                separator = " | ";
            }
        }
        if self.is_empty() {
            f.write_str("NONE")?;
        }
        Ok(())
    }
}

const NAMES: [(Repair, &str); 5] = [
    (Repair::CONTROLS, "CONTROLS"),
    (Repair::ESCAPES, "ESCAPES"),
    (Repair::LITERAL_NEWLINES, "LITERAL_NEWLINES"),
    (Repair::CLOSE, "CLOSE"),
    (Repair::LONE_SURROGATES, "LONE_SURROGATES"),
];

/// A text with its repairs.
///
/// # Examples
///
/// ```
/// use unbraid_core::json::{Repair, repair};
///
/// let repaired = repair("{\"pattern\":\"\\d\"}", Repair::ESCAPES);
/// assert_eq!(repaired.text, "{\"pattern\":\"\\\\d\"}");
/// assert_eq!(repaired.applied, Repair::ESCAPES);
/// ```
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Repaired<'a> {
    /// The text, borrowed if no repair was made.
    pub text: Cow<'a, str>,
    /// The repairs that were made.
    pub applied: Repair,
}

/// Makes those of the allowed repairs that a text needs, in one pass.
///
/// Text that `serde_json` accepts stays unchanged. The result need not be JSON, so it still has to be parsed, and a
/// text that was cut stays cut. Use it for the arguments of any call, including those of a completion that was not
/// streamed. An empty text, which stands for absent arguments, stays empty.
///
/// # Examples
///
/// ```
/// use serde_json::{Value, json};
/// use unbraid_core::json::{Repair, repair};
///
/// let completion = json!({"choices": [{"message": {"tool_calls": [
///     {"function": {"name": "write", "arguments": "{\"text\":\"two\nlines\"}"}}
/// ]}}]});
/// for choice in completion["choices"].as_array().unwrap() {
///     let raw = choice["message"]["tool_calls"][0]["function"]["arguments"].as_str().unwrap_or_default();
///     let repaired = repair(raw, Repair::default());
///     let arguments: Value = serde_json::from_str(&repaired.text)?;
///     assert_eq!(arguments["text"], "two\nlines");
///     assert_eq!(repaired.applied, Repair::CONTROLS);
/// }
/// # Ok::<(), serde_json::Error>(())
/// ```
///
/// A string that was cut is never closed:
///
/// ```
/// use unbraid_core::json::{Repair, repair};
///
/// let repaired = repair("{\"path\":\"/tm", Repair::ALL);
/// assert_eq!(repaired.text, "{\"path\":\"/tm");
/// assert!(repaired.applied.is_empty());
/// assert_eq!(repair("{\"path\":\"/tmp\"", Repair::CLOSE).text, "{\"path\":\"/tmp\"}");
/// ```
#[must_use]
pub fn repair(text: &str, allowed: Repair) -> Repaired<'_> {
    let mut repaired = Rewrite::new(text, allowed).finish();
    if allowed.contains(Repair::CLOSE)
        && let Some(closers) = closers(&repaired.text)
    {
        repaired.text.to_mut().push_str(&closers);
        repaired.applied |= Repair::CLOSE;
    }
    repaired
}

/// The closing brackets of a text that is valid as far as it goes.
fn closers(text: &str) -> Option<String> {
    let mut scanner = Scanner::default();
    scanner.feed(text, &mut NullListener);
    match scanner.verdict() {
        Verdict::Truncated if !scanner.has_controls() && scanner.lone_surrogate().is_none() => {
            scanner.closers()
        }
        _ => None,
    }
}
