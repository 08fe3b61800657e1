//! Test material that every crate of the workspace shares.
//!
//! [`cut`] cuts bytes the way a network does, [`fixture`] finds the streams to cut, [`script`] plays them with every fault
//! that a source can have, and [`slow`] says what an honest
//! but slow client would have got from them. Nothing here imports unbraid: a mistake made in the library cannot be
//! repeated by its judge. With the feature `terminal`, `terminal` runs a program in a terminal and reads its screen.

pub mod cut;
pub mod fixture;
pub mod script;
pub mod slow;
#[cfg(all(unix, feature = "terminal"))]
pub mod terminal;
