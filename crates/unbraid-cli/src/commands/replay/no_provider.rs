//! In place of a provider to record from, in a build that sends no requests.

use std::sync::Arc;

use hyper::Response;
use unbraid_core::Config;

use super::{playlist::Playlist, request::ClientRequest};
use crate::{exit::Failure, server::Body};

/// A provider that does not exist.
#[derive(Debug)]
pub(super) enum Provider {}

impl Provider {
    pub(super) fn new(_url: &str, _config: &Config) -> Result<Self, Failure> {
        Err(Failure::missing("replay --record-from", "chat"))
    }

    pub(super) async fn record(
        &self,
        _request: &ClientRequest,
        _playlist: &Arc<Playlist>,
        _slot: usize,
    ) -> Response<Body> {
        match *self {}
    }
}
