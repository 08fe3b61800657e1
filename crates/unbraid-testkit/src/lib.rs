//! Shared test support of the workspace.
//!
//! [`cut`] splits bytes into reads as a network does, [`fixture`] loads recorded streams, [`script`] replays them with
//! every fault that a source can have, and [`mod@reference`] is a simple reference client whose results the library must match.
//! Nothing here depends on unbraid, so that a bug in the library cannot repeat in its reference. With the feature
//! `terminal`, the module `terminal` runs a program in a terminal and reads its screen; with `servers`, the module `servers`
//! runs brokers as child processes, behind a proxy that fails as networks do.

pub mod cut;
pub mod dialects;
pub mod fixture;
pub mod reference;
pub mod script;
#[cfg(all(unix, feature = "servers"))]
pub mod servers;
#[cfg(all(unix, feature = "terminal"))]
pub mod terminal;
