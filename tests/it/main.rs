//! The integration tests, one binary.
#![cfg(test)]

mod core_properties;
mod corpus;
mod edge_cases;
mod support;
mod traces;
