//! Views of scripted logs, as the bytes that a client gets.

mod ends;
mod hostile;
mod json;
mod properties;
mod rules;
mod script;
