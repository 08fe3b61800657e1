//! Indices and ordinals as types, so that they cannot be mixed up.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! number {
    ($name:ident($inner:ty)) => {
        impl From<$inner> for $name {
            fn from(number: $inner) -> Self {
                Self(number)
            }
        }

        impl From<$name> for $inner {
            fn from(number: $name) -> Self {
                number.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

/// The `index` of a choice, as the server sent it. It is not a position in a list.
///
/// # Examples
///
/// ```
/// assert_eq!(unbraid_core::ChoiceIndex(7).to_string(), "7");
/// ```
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct ChoiceIndex(pub u32);

/// The ordinal of a tool call within its choice, from 0, in order of appearance.
///
/// The server's own index of a call is [`ToolCall::wire_index`](crate::ToolCall::wire_index).
///
/// # Examples
///
/// ```
/// use unbraid_core::CallIndex;
///
/// assert_eq!(CallIndex::from(2), CallIndex(2));
/// assert_eq!(CallIndex(2).to_string(), "2");
/// ```
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct CallIndex(pub u32);

/// The ordinal of a server-sent event within its stream, from 0.
///
/// # Examples
///
/// ```
/// use unbraid_core::EventIndex;
///
/// assert!(EventIndex(3) < EventIndex(10));
/// assert_eq!(EventIndex(3).to_string(), "3");
/// ```
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct EventIndex(pub u64);

number!(ChoiceIndex(u32));
number!(CallIndex(u32));
number!(EventIndex(u64));

impl ChoiceIndex {
    /// The prompt and the choice of a text completion with several prompts: there the wire's index is `prompt * n + choice`.
    ///
    /// # Examples
    ///
    /// ```
    /// assert_eq!(unbraid_core::ChoiceIndex(5).split_by_prompt(2), (2, 1));
    /// ```
    #[must_use]
    pub fn split_by_prompt(self, n: u32) -> (u32, u32) {
        let n = n.max(1);
        (self.0 / n, self.0 % n)
    }
}

impl EventIndex {
    /// The event after this one.
    pub(crate) fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// The event before this one; the first one has none and stays.
    pub(crate) fn previous(self) -> Self {
        Self(self.0.saturating_sub(1))
    }
}
