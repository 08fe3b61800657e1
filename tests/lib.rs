//! An empty library: the tests are in `it`.
