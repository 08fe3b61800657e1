//! The synchronization primitive of this crate. `unbraid-model` compiles it a second time and checks it with loom.

mod primitives;
#[cfg(test)]
mod tests;
pub(crate) mod wake_gate;
