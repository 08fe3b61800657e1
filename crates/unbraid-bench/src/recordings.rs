//! The recorded streams that benchmarks read: those below `UNBRAID_CORPUS`, or the fixtures of the project.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use bytes::Bytes;
use serde_json::Value;

use crate::feed::Reads;

/// One recorded stream.
#[derive(Debug)]
pub(crate) struct Recording {
    /// The name of its file, without the extension.
    pub(crate) name: String,
    pub(crate) bytes: Bytes,
}

/// One event of a recording: its bytes with the blank line, and its data as JSON.
#[derive(Debug)]
pub(crate) struct RecordedEvent<'r> {
    pub(crate) bytes: &'r [u8],
    pub(crate) json: Option<Value>,
}

/// The folder of the recordings.
pub(crate) fn folder() -> PathBuf {
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures");
    std::env::var_os("UNBRAID_CORPUS").map_or_else(|| PathBuf::from(fixtures), PathBuf::from)
}

/// All recordings below a folder, in the order of their paths.
pub(crate) fn below(folder: &Path) -> io::Result<Vec<Recording>> {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<io::Result<_>>()?;
    entries.sort();
    let mut found = Vec::new();
    for path in entries {
        if path.is_dir() {
            found.extend(below(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "sse") {
            found.push(Recording {
                name: path
                    .file_stem()
                    .unwrap_or_default()
                    .to_string_lossy()
                    .into(),
                bytes: fs::read(path)?.into(),
            });
        }
    }
    Ok(found)
}

impl Recording {
    /// The part of the name before `__`: who recorded it.
    pub(crate) fn producer(&self) -> &str {
        self.name.split("__").next().unwrap_or_default()
    }

    /// The events, cut at blank lines. Comments stay with the event after them.
    pub(crate) fn events(&self) -> Vec<RecordedEvent<'_>> {
        let mut events = Vec::new();
        let (mut start, mut line_start) = (0, 0);
        let ends = memchr::memchr_iter(b'\n', &self.bytes).map(|end| end + 1);
        for line_end in ends.chain([self.bytes.len()]) {
            let line = self.bytes.get(line_start..line_end).unwrap_or_default();
            line_start = line_end;
            let is_blank = line.trim_ascii().is_empty();
            if is_blank || line_end == self.bytes.len() {
                let bytes = self.bytes.get(start..line_end).unwrap_or_default();
                let json = data(bytes).and_then(|data| serde_json::from_slice(data).ok());
                if !bytes.trim_ascii().is_empty() {
                    events.push(RecordedEvent { bytes, json });
                }
                start = line_end;
            }
        }
        events
    }
}

/// The data of an event's first data line.
fn data(event: &[u8]) -> Option<&[u8]> {
    let mut lines = event.split(|byte| *byte == b'\n');
    lines.find_map(|line| line.strip_prefix(b"data:"))
}

/// A stream in reads of 16 KiB.
pub(crate) fn in_reads(stream: &Bytes) -> Reads {
    const READ_BYTES: usize = 16 * 1024;
    let starts = (0..stream.len()).step_by(READ_BYTES);
    let reads = starts.map(|start| stream.slice(start..stream.len().min(start + READ_BYTES)));
    Reads::new(reads.collect())
}
