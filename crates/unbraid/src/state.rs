//! What a reader writes and the handles read: the state of a completion, and the log of each of its choices.

pub(crate) mod batch;
pub(crate) mod choice_log;
pub(crate) mod completion;
pub(crate) mod log_owner;
pub(crate) mod merged;
mod shared_transcript;
pub(crate) mod stream_event;
pub(crate) mod tokenizer;
