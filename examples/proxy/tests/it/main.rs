//! The proxy as a browser sees it: its protocol, and its page in a real browser.
#![cfg(test)]

mod browser;
mod protocol;
mod support;
