//! Attacks on unbraid, which the tests, the fuzzers and the soak share.
//!
//! [`targets`] holds what the fuzzers in `fuzz/` run; being plain functions, they run on stable Rust, too, on inputs that
//! [`mutate`] makes of [`seeds`]. [`chunks`] makes ordinary chunks and spoils them, for the decoder's short way, [`shapes`]
//! chunks of every other kind, for its scanner. [`hostile`] makes the streams of a peer who wants memory or time, [`soak`] completions with every fault there is.

pub mod chunks;
pub mod hostile;
pub mod mutate;
pub mod seeds;
pub mod shapes;
pub mod soak;
pub mod targets;
