//! The gateway's page in a real, headless Chromium, as a person uses it. Without one the tests are skipped, and one line
//! says why.
#![cfg(test)]

mod access;
mod answers;
mod appearance;
mod driver;
mod interruptions;
mod running;
mod units;
mod upstream;
