//! What the tests share.

pub(crate) mod engine;
pub(crate) mod test_log;
