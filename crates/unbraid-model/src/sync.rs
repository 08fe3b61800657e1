//! The synchronization primitives of `unbraid` and `unbraid-gateway`, built from their own source files with loom's types.

#[path = "../../unbraid/src/sync/command_queue.rs"]
pub(crate) mod command_queue;
pub(crate) mod primitives;
#[path = "../../unbraid/src/sync/shared.rs"]
pub(crate) mod shared;
#[path = "../../unbraid/src/sync/wait_list.rs"]
pub(crate) mod wait_list;
#[path = "../../unbraid-gateway/src/sync/wake_gate.rs"]
pub(crate) mod wake_gate;
