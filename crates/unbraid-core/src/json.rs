//! Tools for JSON that is still being streamed, or that is not quite JSON.
//!
//! Each of them reads its text once, in fragments of any size, and keeps a stack but not the text:
//!
//! - [`Partial`] builds the value received so far, for a form that fills in while the model writes;
//! - [`Field`] yields the text of one string while it is written, for an answer that appears word by word;
//! - [`check()`] returns whether a text that has ended is valid JSON;
//! - [`repair()`] turns text that is nearly JSON into JSON, and leaves the raw text unchanged.
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
mod check;
mod field;
mod partial;
mod pointer;
mod repair;
mod scan;
mod token;
mod verdict;

#[cfg(test)]
mod tests;

pub use check::check;
pub(crate) use check::{check_cut, feed_scanner, lone_surrogate};
pub use field::{Field, FieldError, FieldState};
pub use partial::{Partial, PartialOptions, TrailingStrings};
pub use pointer::{Pointer, PointerError};
pub use repair::{Repair, Repaired, repair};
pub(crate) use scan::Scanner;
pub use verdict::Verdict;
