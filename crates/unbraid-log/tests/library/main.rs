//! The library's handles over a log, and what produces it.
#![cfg(test)]

// How cancels travel from the handles to the producer.
mod cancel;
// How streams end.
mod ends;
// The same answers as without a log.
mod fixtures;
// What reading holds in memory, and the options that apply to it.
mod memory;

use std::sync::Arc;

use futures::{SinkExt, StreamExt, channel::mpsc};
use unbraid::{BoxError, Completions};
use unbraid_log::{
    LogStatus, LogStore, MemoryLog, MemoryOptions, Meta, Recorder, Recording, StreamEnd, StreamId,
    completions,
};
use unbraid_testkit::script;

type Read = Result<Vec<u8>, BoxError>;

/// A recording whose body the test writes, in a log that others read.
struct Recorded {
    log: Arc<dyn LogStore>,
    id: StreamId,
    recording: Recording,
    body: mpsc::Sender<Read>,
}

impl Recorded {
    async fn start(choices: u32) -> Self {
        Self::start_in(new_log(), choices).await
    }

    async fn start_in(log: Arc<dyn LogStore>, choices: u32) -> Self {
        let meta = Meta::new("/v1/chat/completions", 1_790_000_000);
        Self::start_with(log, meta.with_n(choices)).await
    }

    async fn start_with(log: Arc<dyn LogStore>, meta: Meta) -> Self {
        let id = StreamId::random().unwrap();
        let (sender, body) = mpsc::channel(16);
        let recorder = Recorder::new(Arc::clone(&log)).with_meta(meta);
        let recording = recorder.record(body, id.clone()).await.unwrap();
        Self {
            log,
            id,
            recording,
            body: sender,
        }
    }

    /// The handles of another process.
    fn read(&self) -> Completions {
        completions(Arc::clone(&self.log), self.id.clone())
    }

    async fn write(&mut self, event: &str) {
        let event = event.as_bytes().to_vec();
        self.body.send(Ok(event)).await.expect("the body is read");
    }

    async fn content(&mut self, choice: u32, text: &str) {
        self.write(&script::content(choice, text)).await;
    }

    async fn finish(&mut self, choice: u32) {
        self.write(&script::finish(choice, "stop")).await;
    }

    /// Waits until nobody reads the body any more.
    async fn body_is_dropped(&mut self) {
        while self.body.send(Ok(Vec::new())).await.is_ok() {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    }

    async fn end(self) -> StreamEnd {
        drop(self.body);
        let end = self.recording.ended().await.unwrap();
        let status = self.log.status(&self.id).await.unwrap();
        assert!(matches!(status, LogStatus::Ended { end: kept, .. } if kept == end));
        end
    }
}

fn new_log() -> Arc<dyn LogStore> {
    Arc::new(MemoryLog::new(MemoryOptions::default()))
}

/// The text of a choice up to a number of deltas.
async fn first_deltas(completions: &Completions, choice: u32, count: usize) -> String {
    let choice = completions.choice(choice).await.expect("it appears");
    let deltas = choice.content().take(count);
    deltas
        .map(|delta| delta.expect("it is open").to_string())
        .collect()
        .await
}
