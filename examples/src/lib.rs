//! Shared by the examples: recorded streams and a source that replays them.
