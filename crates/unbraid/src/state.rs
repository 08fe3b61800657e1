//! What readers write and handles read: the list of choices, and the log of each choice.

pub(crate) mod batch;
pub(crate) mod choice_log;
pub(crate) mod completion;
pub(crate) mod merged;
mod shared_transcript;
