//! An answer that has begun: its completion, its first bytes, and its recording.

use futures::TryStreamExt;
use unbraid::Completions;
use unbraid_core::Config;
use unbraid_http::{Client, HttpError, Request};

use super::recording::{RecordFile, RecordingResult};
use crate::{exit::Failure, input::Head};

#[derive(Debug)]
pub(super) struct Answer {
    pub(super) completions: Completions,
    pub(super) head: Head,
    recording: Option<RecordingResult>,
}

impl Answer {
    /// Sends one or several requests. The client reads the bodies, so this answer has no head and no recording.
    pub(super) async fn send(client: &Client, request: &Request) -> Result<Self, HttpError> {
        Ok(Self {
            completions: client.send(request).await?,
            head: Head::default(),
            recording: None,
        })
    }

    /// The answers of several providers.
    pub(super) fn of_several(completions: Completions) -> Self {
        Self {
            completions,
            head: Head::default(),
            recording: None,
        }
    }

    /// Sends one request, reads its answer with this configuration, and records the bytes.
    pub(super) async fn send_recorded(
        client: &Client,
        request: &Request,
        config: Config,
        record: Option<RecordFile>,
    ) -> Result<Self, HttpError> {
        let body = client.open(request).await?;
        let builder = body.stream_config().config(config);
        let head = Head::default();
        let (mut recorder, recording) = record.map(RecordFile::start).unzip();
        let shared_head = head.clone();
        let bytes = body.inspect_ok(move |bytes| {
            shared_head.push(bytes);
            if let Some(recorder) = &mut recorder {
                recorder.write(bytes);
            }
        });
        Ok(Self {
            completions: builder.from_byte_stream(bytes),
            head,
            recording,
        })
    }

    /// Waits until the recording is complete, and returns its error.
    pub(super) async fn finish_recording(self) -> Result<(), Failure> {
        match self.recording {
            Some(recording) => recording.wait().await,
            None => Ok(()),
        }
    }
}
