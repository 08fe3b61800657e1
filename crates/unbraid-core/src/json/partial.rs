//! The value of arguments that are still coming.

use std::fmt;

use serde_json::Value;

use super::{Verdict, scan::Scanner};
use crate::limits::MAX_PARTIAL_NODES;

mod tree;

use tree::Tree;

/// Reads arguments in fragments and shows on demand what they are so far (J19, J20).
///
/// A fragment costs what its own bytes cost, and [`value`](Self::value) what the value's size is; nothing is parsed twice.
/// The value is for showing: only [`judged`](Self::judged) tells whether it is what the model meant to send.
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
/// assert_eq!(partial.value(), Some(json!({"city": "Oslo"})), "12 may come yet");
/// partial.feed("}");
/// assert_eq!(partial.value(), Some(json!({"city": "Oslo", "days": 1})));
/// assert!(partial.is_complete());
/// ```
///
/// Text that is no JSON adds nothing to what came before it:
///
/// ```
/// # use serde_json::json;
/// # use unbraid_core::json::{Verdict, Partial};
/// let mut partial = Partial::default();
/// partial.feed("[1,oops");
/// assert_eq!(partial.value(), Some(json!([1])));
/// assert_eq!(partial.judged(), Verdict::Invalid { offset: 3 });
/// ```
#[derive(Clone, Default)]
pub struct Partial {
    scanner: Scanner,
    tree: Tree,
    trailing: TrailingStrings,
}

/// How a [`Partial`] shows what has come.
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
    /// Values that are kept, containers included; by default [`MAX_PARTIAL_NODES`].
    pub max_nodes: usize,
}

/// Whether a string is shown before it ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum TrailingStrings {
    /// As far as it has come.
    #[default]
    On,
    /// Not before its quote.
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
    /// A view at the start of the arguments.
    #[must_use]
    pub fn new(options: PartialOptions) -> Self {
        Self {
            scanner: Scanner::default(),
            tree: Tree::new(options.max_nodes),
            trailing: options.trailing_strings,
        }
    }

    /// Reads the next fragment. After text that is no JSON nothing is read any more.
    pub fn feed(&mut self, fragment: &str) {
        self.scanner.feed(fragment, &mut self.tree);
    }

    /// Says that no text follows, which ends an outermost number or literal (J14), and tells what the text was.
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
        self.judged()
    }

    /// What has come so far, as a value; `None` while that is nothing.
    ///
    /// Strings are as long as they have come; half an escape and half a character are held back. Numbers and literals
    /// are there once a delimiter follows, keys once their value is. The order of keys is the text's; of duplicate
    /// keys the last counts (J13). A lone surrogate is U+FFFD (J17), and a number beyond `f64` is null. Behind a `{}` placeholder
    /// the next value is shown (T22), of other values in a row the first (J12).
    #[must_use]
    pub fn value(&self) -> Option<Value> {
        self.tree.value(self.trailing)
    }

    /// Whether one value has come in whole, repaired or not, and all of it is shown.
    ///
    /// That more can follow it is never excluded: arguments that parse are no sign that they have ended.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        let whole = matches!(self.judged(), Verdict::Complete | Verdict::Repaired);
        whole && self.tree.is_closed() && !self.is_full()
    }

    /// Whether more values came than are kept: the view stopped growing, though the text is read on.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.tree.is_full()
    }

    /// What the text is, if it ends here.
    #[must_use]
    pub fn judged(&self) -> Verdict {
        self.scanner.judged()
    }
}

impl fmt::Debug for Partial {
    /// Shows no text: arguments carry what people write.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Partial")
            .field("judged", &self.judged())
            .field("nodes", &self.tree.nodes())
            .field("full", &self.is_full())
            .finish_non_exhaustive()
    }
}
