//! A worker generates, this process reads, and a Redis is between them. The first worker is killed, the second one is not.
//!
//! `redis-server & cargo run --example two_processes`, with `REDIS_URL` for another Redis than `redis://127.0.0.1`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::{env, error::Error, process::Command, sync::Arc, time::Duration};

use futures::StreamExt;
use unbraid_examples::{ANSWER, reads};
use unbraid_log::{LogStore, ProducerOptions, Recorder, StreamId, completions};
use unbraid_log_redis::{RedisLog, RedisOptions};

/// A producer that is silent for this long is lost: short, so that the example need not wait.
const LEASE: Duration = Duration::from_secs(1);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = env::var("REDIS_URL").unwrap_or_else(|_| "redis://127.0.0.1".into());
    let options = RedisOptions::default().with_lease(LEASE);
    let log: Arc<dyn LogStore> = Arc::new(RedisLog::connect(&url, options).await?);
    match env::args().nth(1) {
        Some(id) => generate(log, id.parse()?).await,
        None => {
            read(Arc::clone(&log), true).await?;
            read(log, false).await
        }
    }
}

/// The worker: writes the body of a response to the log while it arrives.
async fn generate(log: Arc<dyn LogStore>, id: StreamId) -> Result<(), Box<dyn Error>> {
    let slowly = futures::stream::iter(reads(ANSWER)).then(|read| async move {
        tokio::time::sleep(Duration::from_millis(50)).await;
        Ok::<_, std::io::Error>(read)
    });
    let options = ProducerOptions::default().with_lease(LEASE);
    let recorder = Recorder::new(log).with_producer(options);
    recorder.record(slowly, id).await?.ended().await?;
    Ok(())
}

/// The reader: has the handles of the library, as if the worker's answer were its own.
async fn read(log: Arc<dyn LogStore>, kills: bool) -> Result<(), Box<dyn Error>> {
    let id = StreamId::random()?;
    let mut worker = Command::new(env::current_exe()?).arg(id.as_str()).spawn()?;
    let choice = completions(log, id).first().await?;
    if kills {
        choice.content().next().await.transpose()?;
        worker.kill()?;
    }
    match choice.finished().await {
        Ok(answer) => println!("complete: {}", answer.message.content),
        Err(error) => {
            let reason = error.source().map(ToString::to_string);
            println!("cut: {}", reason.unwrap_or_default());
        }
    }
    worker.wait()?;
    Ok(())
}
