//! `ViewReader`: one response, as frames of its body.

use std::task::{Context, Poll};

use bytes::Bytes;
use unbraid_log::{LogError, Seq};

/// The events of one view, from its start. Dropping it frees its place among the stream's readers.
#[derive(Debug)]
pub(crate) struct ViewReader {}

impl ViewReader {
    /// The next frame of the body: everything that is ready, up to about 64 KiB. `None` at the end of the view.
    ///
    /// An error says that the log failed, not the stream. The connection then ends without a terminal event, so that the client resumes.
    pub(crate) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, LogError>>> {
        let _ = cx;
        unimplemented!()
    }

    /// The id of the last event that was returned; the cursor of the request before the first.
    pub(crate) fn cursor(&self) -> Seq {
        unimplemented!()
    }
}
