//! Arguments while they stream: JSON that is not whole yet, or not quite JSON.
//!
//! Each of these reads its text once, in fragments of any size, and keeps a stack instead of the text:
//!
//! - [`Partial`] is the value so far, for a form that fills itself;
//! - [`Field`] is one string of it as it is typed, for an answer that appears word by word;
//! - [`check()`] tells of a text that has ended whether it is what it should be;
//! - [`repair()`] makes JSON of what is nearly JSON, beside the raw text and never in its place.
//!
//! ```
//! use unbraid_core::json::{Field, Verdict, Partial, Pointer};
//!
//! let mut partial = Partial::default();
//! let mut answer = Field::new(Pointer::parse("/answer")?);
//! let mut shown = String::new();
//! for fragment in ["{\"answer\":\"It ra", "ins.\",\"sources\":[", "1,2]}"] {
//!     partial.feed(fragment);
//!     answer.feed(fragment, &mut |text| shown.push_str(text));
//! }
//! assert_eq!(shown, "It rains.");
//! assert_eq!(partial.finish(), Verdict::Complete);
//! assert_eq!(partial.value().unwrap()["sources"][1], 2);
//! # Ok::<(), unbraid_core::json::PointerError>(())
//! ```
mod field;
mod judge;
mod partial;
mod pointer;
mod repair;
mod scan;
mod token;

#[cfg(test)]
mod tests;

pub use field::{Field, FieldError, FieldState};
pub use judge::{Verdict, check};
pub(crate) use judge::{judge_cut, lone_surrogate};
pub use partial::{Partial, PartialOptions, TrailingStrings};
pub use pointer::{Pointer, PointerError};
pub use repair::{Repair, Repaired, repair};
