//! Tests of the actors.
