//! Tests of the log.
#![cfg(test)]
