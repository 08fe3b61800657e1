//! Views of scripted logs, as the bytes that a client gets.

mod ends;
mod frames;
mod hostile;
mod json;
mod lost;
mod parts;
mod properties;
mod rules;
mod script;
