//! In a build that sends no requests, a transport error was not caused by one.

use serde_json::Value;
use unbraid_core::{Event, TransportError};

pub(crate) fn add_to_event<T>(_event: &Event<T>, _object: &mut Value) {}

pub(super) fn add_cause(_error: &TransportError, _object: &mut Value) {}
