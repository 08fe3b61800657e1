//! Logs: how many appends they take, what a delta costs, and streams that are kept.
//!
//! Each log runs in its own process, because reused memory of another would not be counted. A broker is a further process, whose
//! memory is that of the log. To add a log, add it to `BACKENDS` and to `open`.

mod kept;
mod load;

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
};

use serde_json::{Value, json};
use unbraid_core::ChoiceIndex;
use unbraid_log::{
    Appended, End, Event, LogStore, LogWriter, MemoryLog, MemoryOptions, Meta, Record,
    RecordBuilder, Seq, StreamEnd, StreamId,
};
use unbraid_log_file::{FileLog, FileOptions, FileSync};

use crate::brokers::{BROKERS, Broker};

/// A log in memory, in a file that is synced with each commit, in one that is not, and in brokers that run beside it.
const BACKENDS: [&str; 5] = ["memory", "file", "file-unsynced", "redis", "nats"];

/// The size of a measurement.
#[derive(Debug, Clone, Copy)]
struct Effort {
    seconds: u64,
    kept: usize,
    lookups: usize,
}

impl Effort {
    fn new(quick: bool) -> Self {
        if quick {
            Self {
                seconds: 1,
                kept: 5_000,
                lookups: 500,
            }
        } else {
            Self {
                seconds: 5,
                kept: 100_000,
                lookups: 5_000,
            }
        }
    }
}

/// A log, and what belongs to it.
struct Opened {
    log: Arc<dyn LogStore>,
    /// The process that keeps it, if that is another one.
    broker: Option<Broker>,
    /// Where its files are.
    folder: PathBuf,
}

/// Opens a log whose files are in a folder, or starts its broker. Without the broker's program there is none.
async fn open(backend: &str, folder: &Path) -> io::Result<Option<Opened>> {
    if BROKERS.contains(&backend) {
        let Some(broker) = Broker::start(backend).await? else {
            return Ok(None);
        };
        return Ok(Some(Opened {
            log: broker.connect().await?,
            folder: broker.folder(),
            broker: Some(broker),
        }));
    }
    let file = |sync| {
        let options = FileOptions::default().with_sync(sync);
        FileLog::open(folder.join("streams.log"), options)
    };
    let log: Arc<dyn LogStore> = match backend {
        "memory" => {
            let options = MemoryOptions::default().with_max_bytes(usize::MAX);
            Arc::new(MemoryLog::new(options))
        }
        "file" => Arc::new(file(FileSync::EachCommit).await.map_err(io::Error::other)?),
        "file-unsynced" => Arc::new(file(FileSync::Never).await.map_err(io::Error::other)?),
        _ => return Err(io::Error::other(format!("no log is named {backend}"))),
    };
    Ok(Some(Opened {
        log,
        broker: None,
        folder: folder.to_owned(),
    }))
}

/// A record of deltas with these numbers, of four choices in turn.
fn deltas(first: u64, count: u64) -> Record {
    let mut builder = RecordBuilder::new(Seq(first));
    for seq in first..first + count {
        let choice = ChoiceIndex(u32::try_from(seq % 4).unwrap_or_default());
        let payload = format!(
            r#"{{"id":"chatcmpl-8f1c2a6d0b","object":"chat.completion.chunk","created":1790000000,"model":"model-7b","choices":[{{"index":{choice},"delta":{{"content":" word{seq}"}},"logprobs":null,"finish_reason":null}}]}}"#
        );
        builder.push(&Event::chunk(&[choice], payload.as_bytes()));
    }
    // A few short deltas fit into one record.
    builder.take().unwrap_or_else(|| deltas(first, 1))
}

/// Appends, also while the log is not available: a busy disk may need more than a second, which is part of the latency.
async fn append(writer: &mut dyn LogWriter, record: &Record) -> io::Result<Appended> {
    loop {
        match writer.append(record).await {
            Err(error) if error.is_temporary() => tokio::task::yield_now().await,
            result => return result.map_err(io::Error::other),
        }
    }
}

async fn seal(writer: &mut dyn LogWriter) -> io::Result<()> {
    let end = StreamEnd::new(End::Finished);
    loop {
        match writer.seal(&end).await {
            Err(error) if error.is_temporary() => tokio::task::yield_now().await,
            result => return result.map_err(io::Error::other),
        }
    }
}

async fn open_stream(log: &dyn LogStore, id: &StreamId) -> io::Result<Box<dyn LogWriter>> {
    let meta = Meta::new("/v1/chat/completions", 1_790_000_000).with_n(4);
    loop {
        match log.reopen(id, &meta).await {
            Err(error) if error.is_temporary() => tokio::task::yield_now().await,
            result => return result.map_err(io::Error::other),
        }
    }
}

/// Measures one log, with another number of kept streams if there is one, and prints its row as JSON: null without its program.
pub(crate) fn measure(
    backend: &str,
    kept: Option<&str>,
    quick: bool,
    out: &mut impl Write,
) -> io::Result<()> {
    let mut effort = Effort::new(quick);
    if let Some(kept) = kept {
        effort.kept = kept.parse().map_err(io::Error::other)?;
    }
    let folder = std::env::temp_dir().join(format!("unbraid-bench-log-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let measured = row(backend, effort, &folder);
    std::fs::remove_dir_all(&folder)?;
    writeln!(out, "{}", measured?.unwrap_or(Value::Null))
}

fn row(backend: &str, effort: Effort, folder: &Path) -> io::Result<Option<Value>> {
    // With I/O, because a broker is behind a connection.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let mut loads = Vec::new();
    for streams in [1, 100, 2_000] {
        let folder = folder.join(format!("load-{streams}"));
        std::fs::create_dir_all(&folder)?;
        let load = runtime.block_on(async {
            let Some(opened) = open(backend, &folder).await? else {
                return Ok(None);
            };
            let load = load::measure(&opened, streams, effort.seconds).await;
            load.map(Some)
        });
        match load {
            Ok(Some(load)) => loads.push(load),
            Ok(None) => return Ok(None),
            Err(error) => return Err(error),
        }
    }
    let folder = folder.join("kept");
    std::fs::create_dir_all(&folder)?;
    let kept = runtime.block_on(async {
        match open(backend, &folder).await? {
            Some(opened) => kept::measure(&opened, effort.kept, effort.lookups).await,
            None => Ok(Value::Null),
        }
    })?;
    Ok(Some(
        json!({ "backend": backend, "loads": loads, "kept": kept }),
    ))
}

/// Measures all logs.
pub(crate) fn run(quick: bool, as_json: bool, out: &mut impl Write) -> io::Result<()> {
    let mut rows = Vec::new();
    for backend in BACKENDS {
        let row = in_child(backend, quick)?;
        if !row.is_null() {
            rows.push(row);
        }
    }
    if as_json {
        return writeln!(out, "{}", json!({ "rows": rows }));
    }
    writeln!(
        out,
        "{:<16} {:>8} {:>11} {:>9} {:>9} {:>9} {:>9} {:>8}",
        "log", "streams", "appends/s", "p50 ms", "p99 ms", "CPU us", "broker us", "B/delta"
    )?;
    for row in &rows {
        for load in row["loads"].as_array().into_iter().flatten() {
            writeln!(
                out,
                "{:<16} {:>8} {:>11} {:>9} {:>9} {:>9} {:>9} {:>8}",
                row["backend"].as_str().unwrap_or_default(),
                load["streams"],
                load["appends_per_second"],
                load["p50_ms"],
                load["p99_ms"],
                load["cpu_us_per_append"],
                or_dash(&load["broker_us_per_append"]),
                load["record_bytes"]
            )?;
        }
    }
    writeln!(
        out,
        "\n{:<16} {:>8} {:>11} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "kept streams", "number", "streams/s", "MB RSS", "MB file", "B/delta", "find p50", "p99 us"
    )?;
    for row in &rows {
        let kept = &row["kept"];
        writeln!(
            out,
            "{:<16} {:>8} {:>11} {:>9} {:>9} {:>9} {:>9} {:>9}",
            row["backend"].as_str().unwrap_or_default(),
            kept["streams"],
            kept["streams_per_second"],
            kept["resident_mb"],
            or_dash(&kept["file_mb"]),
            kept["bytes_per_delta"],
            kept["status_p50_us"],
            kept["status_p99_us"]
        )?;
    }
    Ok(())
}

/// A value, or a dash for one that does not exist.
fn or_dash(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        value => value.to_string(),
    }
}

fn in_child(backend: &str, quick: bool) -> io::Result<Value> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["log", backend]);
    if quick {
        command.arg("--quick");
    }
    let output = command.output()?;
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr);
        return Err(io::Error::other(error.trim().to_owned()));
    }
    // Why the row is missing.
    io::stderr().write_all(&output.stderr)?;
    serde_json::from_slice(&output.stdout).map_err(io::Error::other)
}

/// The value below which this part of the sorted values is.
pub(crate) fn percentile(sorted: &[f64], part: f64) -> f64 {
    let position = (sorted.len() as f64 * part) as usize;
    let last = sorted.len().saturating_sub(1);
    sorted.get(position.min(last)).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_log_is_measured() {
        let effort = Effort {
            seconds: 0,
            kept: 20,
            lookups: 10,
        };
        for backend in BACKENDS {
            let folder = std::env::temp_dir().join(format!("unbraid-bench-test-{backend}"));
            std::fs::create_dir_all(&folder).unwrap();
            let row = row(backend, effort, &folder).unwrap();
            std::fs::remove_dir_all(&folder).unwrap();
            let Some(row) = row else {
                assert!(BROKERS.contains(&backend), "{backend}");
                continue;
            };
            assert_eq!(row["kept"]["streams"], 20, "{row}");
            assert!(row["kept"]["status_p50_us"].as_f64() > Some(0.0), "{row}");
            for load in row["loads"].as_array().unwrap() {
                assert!(load["appends_per_second"].as_f64() > Some(0.0), "{row}");
                let has_broker = load["broker_us_per_append"].is_number();
                assert!(!has_broker || BROKERS.contains(&backend), "{row}");
            }
        }
        assert!(row("no such", effort, Path::new("/")).is_err());
    }
}
