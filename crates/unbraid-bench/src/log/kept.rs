//! Streams that have ended and are kept: their memory, their file, and the time to find one.

use std::{io, sync::Arc};

use futures::{StreamExt, TryStreamExt, stream};
use serde_json::{Value, json};
use tokio::time::Instant;
use unbraid_log::{LogStore, Seq, StreamId};

use super::{Opened, append, deltas, open_stream, percentile, seal};
use crate::{
    brokers::{Broker, files},
    memory::resident::Resident,
    random::Random,
    table::rounded,
};

/// The deltas of a stream: four choices of ten.
const DELTAS: u64 = 40;

pub(super) async fn measure(opened: &Opened, streams: usize, lookups: usize) -> io::Result<Value> {
    let log = &opened.log;
    // That of the broker, where there is one.
    let process = opened
        .broker
        .as_ref()
        .map_or_else(|| Some(std::process::id()), Broker::id);
    let resident = || Resident::of(process?);
    let before = resident();
    let started = Instant::now();
    let ids: Vec<StreamId> = stream::iter(0..streams)
        .map(|_| write(log))
        .buffer_unordered(512)
        .try_collect()
        .await?;
    let seconds = started.elapsed().as_secs_f64();
    let after = resident();
    let file = Some(files(&opened.folder)? as f64).filter(|bytes| *bytes > 0.0);
    let resident = before.zip(after);
    let resident = resident.map(|(before, after)| (after.all - before.all) * 1024.0);
    // What Redis keeps is in its memory; its file is for a restart.
    let is_in_memory = log.backend() == "redis" || file.is_none();
    let kept = if is_in_memory { resident } else { file };
    let (status, read) = find(log, &ids, lookups).await?;
    Ok(json!({
        "streams": streams,
        "deltas_each": DELTAS,
        "streams_per_second": (streams as f64 / seconds).round(),
        "resident_mb": resident.map(|bytes| rounded(bytes / 1e6)),
        "file_mb": file.map(|bytes| rounded(bytes / 1e6)),
        "bytes_per_delta": kept.map(|bytes| rounded(bytes / (streams as f64 * DELTAS as f64))),
        "status_p50_us": rounded(percentile(&status, 0.5)),
        "status_p99_us": rounded(percentile(&status, 0.99)),
        "first_record_p50_us": rounded(percentile(&read, 0.5)),
        "first_record_p99_us": rounded(percentile(&read, 0.99)),
    }))
}

async fn write(log: &Arc<dyn LogStore>) -> io::Result<StreamId> {
    let id = StreamId::random().map_err(io::Error::other)?;
    let mut writer = open_stream(&**log, &id).await?;
    for half in 0..2 {
        let record = deltas(half * DELTAS / 2 + 1, DELTAS / 2);
        append(&mut *writer, &record).await?;
    }
    seal(&mut *writer).await?;
    Ok(id)
}

/// The times, in microseconds and sorted, in which a stream is found, and in which its first record is read.
async fn find(
    log: &Arc<dyn LogStore>,
    ids: &[StreamId],
    lookups: usize,
) -> io::Result<(Vec<f64>, Vec<f64>)> {
    let mut random = Random::new(7);
    let (mut status, mut read) = (Vec::new(), Vec::new());
    for _ in 0..lookups {
        let Some(id) = ids.get(random.below(ids.len())) else {
            break;
        };
        let started = Instant::now();
        log.status(id).await.map_err(io::Error::other)?;
        status.push(started.elapsed().as_secs_f64() * 1e6);
        let started = Instant::now();
        let record = log.read(id, Seq(DELTAS / 2)).next().await;
        record.transpose().map_err(io::Error::other)?;
        read.push(started.elapsed().as_secs_f64() * 1e6);
    }
    status.sort_by(f64::total_cmp);
    read.sort_by(f64::total_cmp);
    Ok((status, read))
}
