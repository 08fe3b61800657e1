//! Builds the value of JSON that is still being received.

use std::fmt;

use serde_json::Value;

use super::{Verdict, scan::Scanner};
use crate::limits::MAX_PARTIAL_NODES;

mod tree;

use tree::Tree;

/// Reads JSON in fragments and returns the value received so far on demand.
///
/// A fragment costs time in proportion to its own length, and [`value`](Self::value) in proportion to the size of the
/// value. Nothing is parsed twice. The value is meant for display: only the [`verdict`](Self::verdict) says whether
/// the text is valid.
///
/// # Examples
///
/// ```
/// use serde_json::json;
/// use unbraid_core::json::{Verdict, Partial};
///
/// let mut partial = Partial::default();
/// partial.feed("{\"city\":\"Os");
/// assert_eq!(partial.value(), Some(json!({"city": "Os"})));
/// partial.feed("lo\",\"days\":1");
/// assert_eq!(partial.value(), Some(json!({"city": "Oslo"})), "it may become 12");
/// partial.feed("}");
/// assert_eq!(partial.value(), Some(json!({"city": "Oslo", "days": 1})));
/// assert!(partial.is_complete());
/// ```
///
/// Text that is not JSON adds nothing to the value before it:
///
/// ```
/// # use serde_json::json;
/// # use unbraid_core::json::{Verdict, Partial};
/// let mut partial = Partial::default();
/// partial.feed("[1,oops");
/// assert_eq!(partial.value(), Some(json!([1])));
/// assert_eq!(partial.verdict(), Verdict::Invalid { offset: 3 });
/// ```
#[derive(Clone, Default)]
pub struct Partial {
    scanner: Scanner,
    tree: Tree,
    trailing: TrailingStrings,
}

/// Configures what a [`Partial`] shows.
///
/// # Examples
///
/// ```
/// use unbraid_core::json::{Partial, PartialOptions, TrailingStrings};
///
/// let options = PartialOptions::default().with_trailing_strings(TrailingStrings::Off);
/// let mut partial = Partial::new(options);
/// partial.feed("[\"one\",\"tw");
/// assert_eq!(partial.value(), Some(serde_json::json!(["one"])));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PartialOptions {
    /// Whether a string is shown before it ends.
    pub trailing_strings: TrailingStrings,
    /// The maximum number of values that are kept, including containers. The default is [`MAX_PARTIAL_NODES`].
    pub max_nodes: usize,
}

/// Whether a string is shown before it ends.
///
/// # Examples
///
/// ```
/// use serde_json::json;
/// use unbraid_core::json::{Partial, PartialOptions, TrailingStrings};
///
/// let mut options = PartialOptions::default();
/// for (trailing_strings, expected) in [(TrailingStrings::On, json!(["on"])), (TrailingStrings::Off, json!([]))] {
///     options.trailing_strings = trailing_strings;
///     let mut partial = Partial::new(options.clone());
///     partial.feed("[\"on");
///     assert_eq!(partial.value(), Some(expected));
/// }
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum TrailingStrings {
    /// The text received so far is shown.
    #[default]
    On,
    /// Only complete strings are shown.
    Off,
}

impl PartialOptions {
    with_methods! {
        with_trailing_strings(TrailingStrings): trailing_strings = |trailing| trailing;
        with_max_nodes(usize): max_nodes = |max| max;
    }
}

impl Default for PartialOptions {
    fn default() -> Self {
        Self {
            trailing_strings: TrailingStrings::On,
            max_nodes: MAX_PARTIAL_NODES,
        }
    }
}

impl Partial {
    /// Creates a view at the start of the text.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_core::json::{Partial, PartialOptions};
    ///
    /// let partial = Partial::new(PartialOptions::default());
    /// assert_eq!(partial.value(), None);
    /// ```
    #[must_use]
    pub fn new(options: PartialOptions) -> Self {
        Self {
            scanner: Scanner::default(),
            tree: Tree::new(options.max_nodes),
            trailing: options.trailing_strings,
        }
    }

    /// Reads the next fragment. After text that is not JSON, nothing is read any more.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_core::json::Partial;
    ///
    /// let mut partial = Partial::default();
    /// partial.feed("[1,");
    /// partial.feed("2,");
    /// assert_eq!(partial.value(), Some(serde_json::json!([1, 2])));
    /// ```
    pub fn feed(&mut self, fragment: &str) {
        self.scanner.feed(fragment, &mut self.tree);
    }

    /// Ends the text, and with it an outermost number or literal, and returns the verdict.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_core::json::{Verdict, Partial};
    ///
    /// let mut partial = Partial::default();
    /// partial.feed("12");
    /// assert_eq!(partial.value(), None);
    /// assert_eq!(partial.finish(), Verdict::Complete);
    /// assert_eq!(partial.value(), Some(serde_json::json!(12)));
    /// ```
    pub fn finish(&mut self) -> Verdict {
        self.scanner.finish(&mut self.tree);
        self.verdict()
    }

    /// Returns the value received so far; `None` if there is none yet.
    ///
    /// - A string has the text received so far; half an escape and half a character are held back.
    /// - A number or literal is present once a delimiter follows it, and a key once its value is present.
    /// - Keys have the order of the text; the last of duplicate keys counts.
    /// - A lone surrogate is U+FFFD, and a number beyond the range of `f64` is null.
    /// - After a `{}` placeholder the next value is returned (T22); of other values in a row, the first (J12).
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_core::json::Partial;
    ///
    /// let mut partial = Partial::default();
    /// partial.feed("{\"done\":false,\"text\":\"caf\\u00");
    /// assert_eq!(partial.value(), Some(serde_json::json!({"done": false, "text": "caf"})));
    /// ```
    #[must_use]
    pub fn value(&self) -> Option<Value> {
        self.tree.value(self.trailing)
    }

    /// Returns whether the text so far is one complete value, repaired or not, and all of it is kept.
    ///
    /// More text may still follow: arguments that parse are not a sign that they have ended.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_core::json::Partial;
    ///
    /// let mut partial = Partial::default();
    /// partial.feed("{\"a\":1");
    /// assert!(!partial.is_complete());
    /// partial.feed("}");
    /// assert!(partial.is_complete());
    /// ```
    #[must_use]
    pub fn is_complete(&self) -> bool {
        let has_value = matches!(self.verdict(), Verdict::Complete | Verdict::Repaired);
        has_value && self.tree.is_closed() && !self.is_full()
    }

    /// Returns whether the text has more values than are kept. The value then no longer grows, although the text is
    /// still read.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_core::json::{Partial, PartialOptions};
    ///
    /// let mut options = PartialOptions::default();
    /// options.max_nodes = 2;
    /// let mut partial = Partial::new(options);
    /// partial.feed("[1,2,3]");
    /// assert!(partial.is_full());
    /// assert_eq!(partial.value(), Some(serde_json::json!([1])));
    /// ```
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.tree.is_full()
    }

    /// Returns whether the text is JSON, if it ends here.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_core::json::{Partial, Verdict};
    ///
    /// let mut partial = Partial::default();
    /// partial.feed("{\"a\":");
    /// assert_eq!(partial.verdict(), Verdict::Truncated);
    /// ```
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        self.scanner.verdict()
    }
}

impl fmt::Debug for Partial {
    /// Shows no text, because arguments contain what users write.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Partial")
            .field("verdict", &self.verdict())
            .field("nodes", &self.tree.nodes())
            .field("full", &self.is_full())
            .finish_non_exhaustive()
    }
}
