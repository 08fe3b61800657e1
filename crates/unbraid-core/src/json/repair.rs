//! JSON of what is nearly JSON, beside the raw text and never in its place (D15).

use std::{
    borrow::Cow,
    fmt,
    ops::{BitOr, BitOrAssign},
};

use super::{Verdict, scan::Scanner, token::Deaf};

mod rewrite;

use rewrite::Rewrite;

/// Which repairs may be made, or were.
///
/// By default only [`CONTROLS`](Self::CONTROLS): the others guess what the model meant.
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
    /// Raw control characters in a string are escaped, and a backslash before one too (J1 to J3).
    pub const CONTROLS: Self = Self(1);
    /// The backslash of an escape that JSON does not have stands for itself: `\d`, `\'`, `\u12` (J4).
    pub const ESCAPES: Self = Self(1 << 1);
    /// An escape outside of strings is the white space that it would be inside: `\n`, `\r`, `\t` (J5).
    pub const LITERAL_NEWLINES: Self = Self(1 << 2);
    /// Arrays and objects that are open at the end are closed, if nothing was cut inside a string, number or literal and the
    /// rest is right (J7). A number that only the end delimits may have been cut; so may an array, which this cannot know.
    pub const CLOSE: Self = Self(1 << 3);
    /// A lone surrogate is U+FFFD, since `serde_json` refuses it (J17).
    pub const LONE_SURROGATES: Self = Self(1 << 4);
    /// Every repair.
    pub const ALL: Self = Self((1 << 5) - 1);

    /// Whether all of these are in the set.
    #[must_use]
    pub const fn contains(self, repairs: Self) -> bool {
        self.0 & repairs.0 == repairs.0
    }

    /// Whether the set has none.
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

/// A text after its repairs; the text they were made on is as it was.
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
/// What `serde_json` reads is not touched. What comes back need not be JSON: parse it, and mind that a text that was cut
/// stays cut. It is for the arguments of any call, also of a completion that did not stream (R30 to R32); absent
/// arguments are an empty text, and stay so.
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
/// A string that was cut is not closed, whatever is allowed:
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

/// What completes a text that is right as far as it goes.
fn closers(text: &str) -> Option<String> {
    let mut scanner = Scanner::default();
    scanner.feed(text, &mut Deaf);
    match scanner.judged() {
        Verdict::Truncated if !scanner.has_controls() && scanner.lone().is_none() => {
            scanner.closers()
        }
        _ => None,
    }
}
