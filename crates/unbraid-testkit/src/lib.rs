//! Shared test support of the workspace.
//!
//! [`cut`] splits bytes into reads as a network does, [`fixture`] loads recorded streams, [`script`] replays them with
//! every fault that a source can have, and [`mod@reference`] is a simple reference client whose results the library must match.
//! [`servers`] runs the engines that keep streams as child processes.
//! Nothing here depends on unbraid, so that a bug in the library cannot repeat in its reference. With the feature
//! `terminal`, the module `terminal` runs a program in a terminal and reads its screen.

pub mod cut;
pub mod dialects;
pub mod fixture;
pub mod reference;
pub mod script;
pub mod servers;
#[cfg(all(unix, feature = "terminal"))]
pub mod terminal;
