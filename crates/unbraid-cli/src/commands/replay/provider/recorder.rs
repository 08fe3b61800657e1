//! The files of a response that is being recorded.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

use tokio::time::Instant;
use unbraid::BoxError;
use unbraid_core::Config;

use super::super::{
    recording::Recording,
    request::ClientRequest,
    secrets::{Keys, recorded_headers},
};
use crate::{
    exchange::{Exchange, ReadTime, RecordedRequest, RecordedResponse},
    printable::printable,
};

/// The longest response that is recorded.
const MAX_BYTES: u64 = 256 << 20;

/// Writes a response to a temporary file, which gets its name when it is complete.
pub(super) struct Recorder {
    path: PathBuf,
    temporary: PathBuf,
    file: File,
    exchange: Exchange,
    keys: Keys,
    config: Config,
    /// When the request was sent.
    start: Instant,
    bytes: u64,
    is_complete: bool,
}

impl Recorder {
    pub(super) fn create(
        path: &Path,
        request: &ClientRequest,
        response: &reqwest::Response,
        config: &Config,
        start: Instant,
    ) -> Result<Self, BoxError> {
        let keys = Keys::of_request(request);
        if keys.are_in(&request.bytes) {
            return Err("the request contains the API key".into());
        }
        let mut temporary = path.as_os_str().to_owned();
        temporary.push(".part");
        let temporary = PathBuf::from(temporary);
        let exchange = Exchange {
            request: RecordedRequest {
                method: "POST".to_owned(),
                path: request.path.clone(),
                headers: recorded_headers(&request.headers),
                body: request.body.clone(),
            },
            response: RecordedResponse {
                status: response.status().as_u16(),
                headers: recorded_headers(response.headers()),
                reads: Vec::new(),
            },
        };
        Ok(Self {
            file: File::create(&temporary)?,
            path: path.into(),
            temporary,
            exchange,
            keys,
            config: config.clone(),
            start,
            bytes: 0,
            is_complete: false,
        })
    }

    /// The name of the recording, for messages.
    pub(super) fn name(&self) -> String {
        printable(&self.path.to_string_lossy())
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), BoxError> {
        self.bytes += bytes.len() as u64;
        if self.bytes > MAX_BYTES {
            return Err("the response is longer than 256 MiB".into());
        }
        self.file.write_all(bytes)?;
        let milliseconds = (self.start.elapsed().as_secs_f64() * 1e6).round() / 1e3;
        let read = ReadTime(self.bytes, milliseconds);
        self.exchange.response.reads.push(read);
        Ok(())
    }

    /// Gives the files their names, and returns the recording.
    pub(super) fn finish(mut self) -> Result<Recording, BoxError> {
        self.file.flush()?;
        if self.keys.are_in(&fs::read(&self.temporary)?) {
            return Err("the response contains the API key".into());
        }
        // The recording appears last. A file that exists is complete, and has its exchange.
        let exchange = serde_json::to_vec(&self.exchange)?;
        // As it is written: an escape may have hidden a key in the bytes of the request.
        if self.keys.are_in(&exchange) {
            return Err("the request contains the API key".into());
        }
        // Before the exchange is written, which belongs to the recording that exists.
        if self.path.exists() {
            return Err(io::Error::from(io::ErrorKind::AlreadyExists).into());
        }
        fs::write(Exchange::path(&self.path), exchange)?;
        rename(&self.temporary, &self.path)?;
        self.is_complete = true;
        Recording::load_file(&self.path, &self.config).map_err(|error| error.to_string().into())
    }
}

/// Renames a file, but replaces none: another process may have recorded the same one in the meantime.
fn rename(from: &Path, to: &Path) -> io::Result<()> {
    match to.exists() {
        true => Err(io::ErrorKind::AlreadyExists.into()),
        false => fs::rename(from, to),
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        if !self.is_complete {
            let _leftover: io::Result<()> = fs::remove_file(&self.temporary);
        }
    }
}
