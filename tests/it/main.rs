//! The integration tests, in one binary.
#![cfg(test)]

mod actors;
mod core_properties;
mod corpus;
mod dialect_faults;
mod dialect_scripts;
mod dialects;
mod edge_cases;
mod no_blank_lines;
mod other_forms;
mod prompt;
mod reencoded;
mod support;
mod think;
mod tidy;
mod tool_calls;
mod traces;
mod usage_error;
