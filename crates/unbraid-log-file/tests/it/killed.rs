//! The test runs itself as a child process, which appends until it is killed.

use std::{
    collections::HashMap,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use futures::future::join_all;
use unbraid_log::{End, LogStatus, LogStore, StreamEnd, StreamId};
use unbraid_log_file::{FileLog, FileLogError, FileOptions, FileSync};

use crate::{open_log, open_stream, read_to_end, record};

const FILE: &str = "UNBRAID_TEST_FILE";
const STREAMS: usize = 8;

/// Appends to several streams, opens and seals others, and prints what was acknowledged.
#[tokio::test]
#[ignore = "a child process of the tests below"]
async fn child() {
    let path = std::env::var(FILE).expect("the test sets the path");
    let sync = match std::env::var("UNBRAID_TEST_SYNC").as_deref() {
        Ok("never") => FileSync::Never,
        _ => FileSync::EachCommit,
    };
    let log = open_log(Path::new(&path), FileOptions::default().with_sync(sync)).await;
    println!("open");
    join_all((0..STREAMS).map(|_| produce(&log))).await;
}

async fn produce(log: &FileLog) {
    loop {
        let (id, mut writer) = open_stream(log).await;
        println!("opened {id}");
        for seq in 1..=50 {
            // A long payload now and then, so that records move to their streams.
            let length = if seq % 10 == 0 { 30_000 } else { 80 };
            writer.append(&record(seq, seq, length)).await.unwrap();
            println!("appended {id} {seq}");
        }
        writer.seal(&StreamEnd::new(End::Finished)).await.unwrap();
        println!("sealed {id}");
        std::io::stdout().flush().unwrap();
    }
}

/// A child process, which is killed when it is dropped.
struct Producer(Child);

impl Producer {
    fn start(path: &Path, sync: &str) -> Self {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "killed::child", "--ignored", "--nocapture"])
            .env(FILE, path)
            .env("UNBRAID_TEST_SYNC", sync)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self(child)
    }

    /// Waits until the log is open.
    fn wait(&mut self) -> BufReader<std::process::ChildStdout> {
        let mut output = BufReader::new(self.0.stdout.take().unwrap());
        let mut line = String::new();
        while !line.ends_with("open\n") {
            line.clear();
            assert!(output.read_line(&mut line).unwrap() > 0, "the child failed");
        }
        output
    }

    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        // It may have been killed before.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// What the child has reported of a stream.
#[derive(Default)]
struct Known {
    tail: u64,
    is_sealed: bool,
}

fn read_report(known: &mut HashMap<String, Known>, output: impl BufRead) {
    // The last line may be cut.
    let lines = output.split(b'\n').map_while(Result::ok);
    for line in lines {
        let line = String::from_utf8(line).unwrap();
        let mut words = line.split(' ');
        match (words.next(), words.next(), words.next()) {
            (Some("opened"), Some(id), None) if id.len() == 22 => {
                known.entry(id.to_owned()).or_default();
            }
            (Some("appended"), Some(id), Some(seq)) => {
                let seq = seq.parse().unwrap_or(0);
                let known = known.entry(id.to_owned()).or_default();
                known.tail = known.tail.max(seq);
            }
            (Some("sealed"), Some(id), None) if id.len() == 22 => {
                known.entry(id.to_owned()).or_default().is_sealed = true;
            }
            _ => {}
        }
    }
}

async fn kill_and_check(sync: &str, kills: u64) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("streams.log");
    let mut known = HashMap::new();
    for kill in 0..kills {
        let mut producer = Producer::start(&path, sync);
        let output = producer.wait();
        let reader = std::thread::spawn(move || {
            let mut part = HashMap::new();
            read_report(&mut part, output);
            part
        });
        std::thread::sleep(Duration::from_millis(40 + kill * 37 % 300));
        producer.kill();
        known.extend(reader.join().unwrap());
        let log = open_log(&path, FileOptions::default()).await;
        for (id, known) in &known {
            let id: StreamId = id.parse().unwrap();
            let status = log.status(&id).await.unwrap();
            let LogStatus::Ended { tail, end, .. } = status else {
                panic!("{id}: {status:?}");
            };
            assert!(tail.0 >= known.tail, "{id} has {tail}, not {}", known.tail);
            // An append or a seal may have been committed without being reported.
            assert!(tail.0 <= 50 && read_to_end(&log, &id, 0).await == tail.0);
            if known.is_sealed {
                assert_eq!(end.end, End::Finished);
            } else {
                assert!(matches!(end.end, End::ProducerLost | End::Finished));
            }
        }
        log.close().await.unwrap();
    }
    let acknowledged: u64 = known.values().map(|known| known.tail).sum();
    assert!(acknowledged > kills * 10, "{acknowledged} appends");
}

#[tokio::test]
async fn everything_that_was_acknowledged_survives_a_kill() {
    kill_and_check("each-commit", 10).await;
}

#[tokio::test]
async fn everything_that_was_acknowledged_survives_a_kill_without_a_sync() {
    kill_and_check("never", 10).await;
}

#[tokio::test]
async fn a_file_that_another_process_uses_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("streams.log");
    let mut producer = Producer::start(&path, "never");
    let output = producer.wait();
    let reader = std::thread::spawn(move || drop(output.lines().last()));
    let opened = FileLog::open(&path, FileOptions::default()).await;
    assert!(matches!(opened, Err(FileLogError::InUse)), "{opened:?}");
    producer.kill();
    reader.join().unwrap();
    let log = open_log(&path, FileOptions::default()).await;
    // The same holds for another log of this process.
    let opened = FileLog::open(&path, FileOptions::default()).await;
    assert!(matches!(opened, Err(FileLogError::InUse)), "{opened:?}");
    log.close().await.unwrap();
    open_log(&path, FileOptions::default()).await;
}
