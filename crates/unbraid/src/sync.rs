//! The synchronization primitives of this crate. `unbraid-model` compiles them a second time and checks them with loom.

pub(crate) mod command_queue;
mod primitives;
pub(crate) mod shared;
pub(crate) mod wait_list;
