//! The exchange of a recording: the request that it answers, the head of the response, and the times of its bytes.
//!
//! A recording holds the body of a response and nothing else, so that every program can read it. The exchange is a JSON file
//! beside it.

use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
    time::Duration,
};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::exit::Failure;

/// Follows the name of the recording.
const EXTENSION: &str = ".exchange.json";

/// The longest exchange that is read. It holds one request, and two numbers for each read of the response.
const MAX_BYTES: u64 = 128 << 20;

/// A request and the response to it, without the body of the response.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Exchange {
    pub(crate) request: RecordedRequest,
    pub(crate) response: RecordedResponse,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct RecordedRequest {
    pub(crate) method: String,
    /// Without the query, which may contain a key.
    pub(crate) path: String,
    pub(crate) headers: Map<String, Value>,
    pub(crate) body: Value,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct RecordedResponse {
    pub(crate) status: u16,
    pub(crate) headers: Map<String, Value>,
    /// The reads of the body, in order.
    #[serde(default)]
    pub(crate) reads: Vec<ReadTime>,
}

/// When a part of the body arrived: the number of bytes until its end, and the milliseconds since the request was sent.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct ReadTime(pub(crate) u64, pub(crate) f64);

impl Exchange {
    /// The path of the exchange of a recording.
    pub(crate) fn path(recording: &Path) -> PathBuf {
        let mut path = recording.as_os_str().to_owned();
        path.push(EXTENSION);
        path.into()
    }

    /// Reads the exchange of a recording, if it has one.
    pub(crate) fn read(recording: &Path) -> Result<Option<Self>, Failure> {
        let path = Self::path(recording);
        match read(&path) {
            Ok(exchange) => Ok(Some(exchange)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Failure::File { path, error }),
        }
    }
}

fn read(path: &Path) -> io::Result<Exchange> {
    let mut bytes = Vec::new();
    let mut file = File::open(path)?.take(MAX_BYTES + 1);
    file.read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(io::Error::other("is longer than 128 MiB"));
    }
    Ok(serde_json::from_slice(&bytes)?)
}

impl RecordedResponse {
    /// The times of the reads, each not before the one that precedes it.
    pub(crate) fn times(&self) -> Vec<(u64, Duration)> {
        let mut last = Duration::ZERO;
        let times = self.reads.iter().map(|ReadTime(end, milliseconds)| {
            // In a file that was edited, a time may not be a duration. It counts as that of the read before.
            let time = Duration::try_from_secs_f64(milliseconds / 1e3).unwrap_or(last);
            last = last.max(time);
            (*end, last)
        });
        times.collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::Map;

    use super::{Exchange, ReadTime, RecordedRequest, RecordedResponse};

    fn response(reads: &[(u64, f64)]) -> RecordedResponse {
        RecordedResponse {
            status: 200,
            headers: Map::new(),
            reads: reads.iter().map(|(end, ms)| ReadTime(*end, *ms)).collect(),
        }
    }

    #[test]
    fn times_never_decrease() {
        let times = response(&[(4, 10.0), (6, 2.5), (9, -1.0), (12, 20.0)]).times();
        let times: Vec<_> = times.iter().map(|(end, t)| (*end, t.as_millis())).collect();
        assert_eq!(times, [(4, 10), (6, 10), (9, 10), (12, 20)]);
        let huge = response(&[(1, f64::MAX)]).times();
        assert_eq!(huge, [(1, Duration::ZERO)]);
    }

    #[test]
    fn an_exchange_is_read_beside_its_recording() {
        let dir = tempfile::tempdir().unwrap();
        let recording = dir.path().join("a.sse");
        assert!(Exchange::read(&recording).unwrap().is_none());
        let exchange = Exchange {
            request: RecordedRequest {
                method: "POST".into(),
                path: "/v1/chat/completions".into(),
                headers: Map::new(),
                body: serde_json::json!({ "model": "m" }),
            },
            response: response(&[(5, 1.5)]),
        };
        let text = serde_json::to_string(&exchange).unwrap();
        std::fs::write(dir.path().join("a.sse.exchange.json"), &text).unwrap();
        assert_eq!(Exchange::read(&recording).unwrap(), Some(exchange));
        assert!(text.contains("\"reads\":[[5,1.5]]"), "{text}");
        std::fs::write(dir.path().join("a.sse.exchange.json"), "[").unwrap();
        assert!(Exchange::read(&recording).is_err());
    }
}
