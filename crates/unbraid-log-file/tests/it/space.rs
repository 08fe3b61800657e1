//! A full disk: a small file system where one can be mounted, and a limit on the length of files everywhere else.
#![cfg(unix)]

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use tempfile::TempDir;
use tokio::time::{sleep, timeout};
use unbraid_log::{Claim, ClaimKey, End, LogError, LogStatus, LogStore, StreamEnd, StreamId};
use unbraid_log_file::FileOptions;

use crate::{append, meta, open_log, open_stream, read_to_end, record};

/// A mounted file system, which is unmounted when it is dropped.
struct SmallDisk(TempDir);

impl SmallDisk {
    fn mount(size: &str) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let options = format!("size={size}");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &options, "tmpfs"])
            .arg(folder.path())
            .output();
        mounted.ok()?.status.success().then_some(Self(folder))
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("streams.log")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily: after a failed test the file is still open.
        let unmounted = Command::new("umount").arg("-l").arg(self.0.path()).status();
        drop(unmounted);
    }
}

#[tokio::test]
async fn a_full_disk_loses_nothing_and_recovers() {
    let Some(disk) = SmallDisk::mount("24m") else {
        println!("skipped: a file system can be mounted by root only");
        return;
    };
    let options = FileOptions::default().with_ttl(Duration::from_secs(3));
    let log = open_log(&disk.path(), options).await;
    let (first, mut writer) = open_stream(&log).await;
    writer.append(&record(1, 10, 100)).await.unwrap();
    writer.seal(&StreamEnd::new(End::Finished)).await.unwrap();
    let key = |name| ClaimKey::new("alice", "/v1/completions", name, [3; 32]);
    let [holder, other] = [(); 2].map(|()| StreamId::random().unwrap());
    let claimed = log.claim(&key("held"), &holder).await;
    assert_eq!(claimed, Ok(Claim::Acquired));
    let (running, mut writer) = open_stream(&log).await;
    // The first refusal is of a new stream, the second of an append.
    let mut tail = 0;
    let refused = loop {
        assert!(tail < 4000, "the disk is never full");
        match writer.append(&record(tail + 1, tail + 10, 4000)).await {
            Ok(_) => tail += 10,
            Err(error) => break error,
        }
    };
    assert_eq!(refused, LogError::Full, "nothing was stored");
    let id = StreamId::random().unwrap();
    assert_eq!(log.open(&id, &meta()).await.err(), Some(LogError::Full));
    assert!(
        log.warnings()
            .iter()
            .any(|warning| warning.contains("full"))
    );
    // A claim is renewed, so that its request is not sent twice.
    let claimed = log.claim(&key("held"), &holder).await;
    assert_eq!(claimed, Ok(Claim::Acquired));
    let claimed = log.claim(&key("held"), &other).await;
    assert!(matches!(claimed, Ok(Claim::Held { .. })), "{claimed:?}");
    assert!(log.claim(&key("new"), &other).await.is_err());
    // What was written can be read, and what expires is freed, so that the producer continues.
    assert_eq!(read_to_end(&log, &first, 0).await, 10);
    assert_eq!(
        log.erase(&running).await,
        Ok(()),
        "an erasure needs little space"
    );
    sleep(Duration::from_millis(500)).await;
    assert_eq!(
        log.open(&id, &meta()).await.err(),
        None,
        "there is room again"
    );
    log.close().await.unwrap();
}

/// The child process of the next test: its files cannot grow beyond a limit.
#[tokio::test]
#[ignore = "a child process of the test below"]
async fn child() {
    let path = std::env::var("UNBRAID_TEST_FILE").expect("the test sets the path");
    let log = open_log(Path::new(&path), FileOptions::default()).await;
    let (ended, mut writer) = open_stream(&log).await;
    writer.append(&record(1, 10, 100)).await.unwrap();
    writer.seal(&StreamEnd::new(End::Finished)).await.unwrap();
    let (running, mut writer) = open_stream(&log).await;
    let (_, mut other) = open_stream(&log).await;
    other.append(&record(1, 100, 5000)).await.unwrap();
    other.seal(&StreamEnd::new(End::Finished)).await.unwrap();
    let mut tail = 0;
    let refused = loop {
        assert!(tail < 4000, "the file is never full");
        match writer.append(&record(tail + 1, tail + 10, 4000)).await {
            Ok(_) => tail += 10,
            Err(error) => break error,
        }
    };
    assert!(refused.is_temporary(), "{refused}");
    // The log opens its file again, and everything that was acknowledged is there.
    let mut status = Err(LogError::Unknown);
    for _ in 0..100 {
        status = log.status(&ended).await;
        if status.is_ok() {
            break;
        }
        // What is requested makes the log try again.
        let _result = writer.append(&record(tail + 1, tail + 1, 1)).await;
        sleep(Duration::from_millis(50)).await;
    }
    assert!(matches!(status, Ok(LogStatus::Ended { .. })), "{status:?}");
    assert_eq!(read_to_end(&log, &ended, 0).await, 10);
    let erased = log.erase(&ended).await;
    assert!(erased.is_ok() || erased.unwrap_err().is_temporary());
    println!("acknowledged {running} {tail}");
    log.close().await.unwrap();
}

#[tokio::test]
async fn a_file_that_cannot_grow_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("streams.log");
    // In units of 512 bytes; the signal that the limit sends by default is ignored.
    let script =
        r#"trap "" XFSZ; ulimit -f 8192; exec "$0" --exact space::child --ignored --nocapture"#;
    let output = Command::new("sh")
        .args(["-c", script])
        .arg(std::env::current_exe().unwrap())
        .env("UNBRAID_TEST_FILE", &path)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        output.status.success(),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("acknowledged "));
    let (id, tail) = line.unwrap().split_once(' ').unwrap();
    let (id, tail) = (id.parse().unwrap(), tail.parse::<u64>().unwrap());
    assert!(tail > 0);
    // Without the limit, the next process reads everything.
    let opened = timeout(
        Duration::from_secs(20),
        open_log(&path, FileOptions::default()),
    );
    let log = opened.await.unwrap();
    assert!(read_to_end(&log, &id, 0).await >= tail);
    let (id, mut writer) = open_stream(&log).await;
    append(&mut *writer, &record(1, 50, 4000)).await.unwrap();
    writer.seal(&StreamEnd::new(End::Finished)).await.unwrap();
    assert_eq!(read_to_end(&log, &id, 0).await, 50);
}
