//! Streams that append as fast as their log acknowledges, one append in flight each.

use std::{io, sync::Arc, time::Duration};

use cpu_time::ProcessTime;
use futures::future::join_all;
use serde_json::{Value, json};
use tokio::time::Instant;
use unbraid_log::{LogStore, StreamId};

use super::{Opened, append, deltas, open_stream, percentile, seal};
use crate::{brokers::Broker, table::rounded};

/// A stream ends after this many deltas, and another one begins.
const DELTAS: u64 = 500;

pub(super) async fn measure(opened: &Opened, streams: usize, seconds: u64) -> io::Result<Value> {
    let log = &opened.log;
    let broker_cpu = || opened.broker.as_ref().and_then(Broker::cpu);
    let broker_before = broker_cpu();
    let cpu = ProcessTime::now();
    let started = Instant::now();
    let deadline = started + Duration::from_secs(seconds);
    let producers = (0..streams).map(|_| tokio::spawn(produce(Arc::clone(log), deadline)));
    let mut latencies = Vec::new();
    for produced in join_all(producers).await {
        latencies.extend(produced.map_err(io::Error::other)??);
    }
    let (wall, cpu) = (started.elapsed().as_secs_f64(), cpu.elapsed());
    let broker = broker_before.zip(broker_cpu());
    let broker = broker.map(|(before, after)| after.saturating_sub(before));
    latencies.sort_by(f64::total_cmp);
    let appends = latencies.len() as f64;
    Ok(json!({
        "streams": streams,
        "appends_per_second": (appends / wall).round(),
        "p50_ms": rounded(percentile(&latencies, 0.5)),
        "p99_ms": rounded(percentile(&latencies, 0.99)),
        "cpu_us_per_append": rounded(cpu.as_secs_f64() * 1e6 / appends),
        "broker_us_per_append": broker.map(|cpu| rounded(cpu.as_secs_f64() * 1e6 / appends)),
        "record_bytes": deltas(100, 1).encoded().len(),
    }))
}

/// Appends deltas, and returns the time of each append in milliseconds.
async fn produce(log: Arc<dyn LogStore>, deadline: Instant) -> io::Result<Vec<f64>> {
    let mut latencies = Vec::new();
    loop {
        let id = StreamId::random().map_err(io::Error::other)?;
        let mut writer = open_stream(&*log, &id).await?;
        for seq in 1..=DELTAS {
            let record = deltas(seq, 1);
            let started = Instant::now();
            append(&mut *writer, &record).await?;
            latencies.push(started.elapsed().as_secs_f64() * 1e3);
            if Instant::now() >= deadline {
                break;
            }
            // A log in memory is always ready.
            tokio::task::consume_budget().await;
        }
        seal(&mut *writer).await?;
        if Instant::now() >= deadline {
            return Ok(latencies);
        }
    }
}
