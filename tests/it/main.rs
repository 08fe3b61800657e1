//! The integration tests, one binary.
#![cfg(test)]

mod core_properties;
mod corpus;
mod support;
mod traces;
