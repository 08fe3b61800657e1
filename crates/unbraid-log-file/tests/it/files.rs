use std::{
    fs, panic,
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use redb::{Database, TableDefinition};
use unbraid_log::{End, LogStore, StreamEnd};
use unbraid_log_file::{FileLog, FileLogError, FileOptions, hide_caught_panics};

use crate::{open_log, open_stream, record};

/// The error of a file that cannot be opened, and which is not changed.
async fn refused(path: &Path) -> FileLogError {
    let before = fs::read(path).unwrap();
    let opened = FileLog::open(path, FileOptions::default()).await;
    let error = opened.expect_err("the file cannot be a log");
    assert!(fs::read(path).unwrap() == before, "the file was changed");
    error
}

#[tokio::test]
async fn a_foreign_file_is_refused_and_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    for content in [
        &b"x"[..],
        b"Dear diary, ..",
        &[0; 100_000],
        b"SQLite format 3\0",
    ] {
        fs::write(&path, content).unwrap();
        assert_eq!(refused(&path).await, FileLogError::Foreign);
    }
}

#[tokio::test]
async fn a_database_of_another_program_is_refused_and_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let database = Database::create(&path).unwrap();
    let transaction = database.begin_write().unwrap();
    let table: TableDefinition<'_, &str, u64> = TableDefinition::new("others");
    transaction
        .open_table(table)
        .unwrap()
        .insert("a", 1)
        .unwrap();
    transaction.commit().unwrap();
    drop(database);
    assert_eq!(refused(&path).await, FileLogError::Foreign);
}

#[tokio::test]
async fn a_file_of_a_later_version_is_refused_and_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    open_log(&path, FileOptions::default())
        .await
        .close()
        .await
        .unwrap();
    let database = Database::create(&path).unwrap();
    let transaction = database.begin_write().unwrap();
    let head: TableDefinition<'_, &str, u64> = TableDefinition::new("unbraid.head");
    transaction
        .open_table(head)
        .unwrap()
        .insert("format", 2)
        .unwrap();
    transaction.commit().unwrap();
    drop(database);
    let error = refused(&path).await;
    assert_eq!(error, FileLogError::UnsupportedVersion { version: 2 });
}

#[tokio::test]
async fn a_damaged_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let log = open_log(&path, FileOptions::default()).await;
    let (_, mut writer) = open_stream(&log).await;
    writer.append(&record(1, 400, 1000)).await.unwrap();
    writer.seal(&StreamEnd::new(End::Finished)).await.unwrap();
    log.close().await.unwrap();
    let intact = fs::read(&path).unwrap();
    let text = b"xxxxxxxx";
    let position = intact.windows(8).position(|bytes| bytes == text).unwrap();
    let mut damaged = intact.clone();
    damaged[position] = b'y';
    let cut = intact[..intact.len() / 2].to_vec();
    for content in [damaged, cut] {
        fs::write(&path, content).unwrap();
        let opened = FileLog::open(&path, FileOptions::default()).await;
        assert!(
            matches!(opened, Err(FileLogError::Damaged { .. })),
            "{opened:?}"
        );
    }
    fs::write(&path, intact).unwrap();
    open_log(&path, FileOptions::default()).await;
}

/// redb panics at some of them.
#[tokio::test]
async fn no_panic_is_printed_that_is_returned_as_an_error() {
    static PANICS: [AtomicUsize; 2] = [AtomicUsize::new(0), AtomicUsize::new(0)];
    let count = |which: &'static AtomicUsize| {
        let hook = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if thread::current().name() == Some("unbraid-log-file") {
                which.fetch_add(1, Ordering::Relaxed);
            }
            hook(info);
        }));
    };
    let [printed, all] = &PANICS;
    count(printed);
    hide_caught_panics();
    count(all);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let log = open_log(&path, FileOptions::default()).await;
    let (_, mut writer) = open_stream(&log).await;
    writer.append(&record(1, 40, 1000)).await.unwrap();
    writer.seal(&StreamEnd::new(End::Finished)).await.unwrap();
    log.close().await.unwrap();
    let intact = fs::read(&path).unwrap();
    let pages = intact.chunks(4096).enumerate();
    for (number, _) in pages.filter(|(_, page)| page.iter().any(|byte| *byte != 0)) {
        let mut damaged = intact.clone();
        damaged[number * 4096..][..4096].fill(0);
        fs::write(&path, damaged).unwrap();
        let opened = FileLog::open(&path, FileOptions::default()).await;
        if let Ok(log) = opened {
            let _closed = log.close().await;
        }
    }
    let [printed, all] = [printed, all].map(|count| count.load(Ordering::Relaxed));
    assert!(printed == 0 && all > 0, "{printed} of {all}");
}

#[tokio::test]
async fn a_path_that_cannot_be_used_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for path in [
        folder.path().to_owned(),
        folder.path().join("a/b"),
        "".into(),
    ] {
        let opened = FileLog::open(&path, FileOptions::default()).await;
        assert!(matches!(opened, Err(FileLogError::Io { .. })), "{opened:?}");
    }
    // An empty file becomes a log.
    let path = folder.path().join("empty");
    fs::write(&path, b"").unwrap();
    open_log(&path, FileOptions::default()).await;
}

#[cfg(unix)]
#[tokio::test]
async fn only_the_owner_can_read_the_file() {
    use std::os::unix::fs::MetadataExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let log = open_log(&path, FileOptions::default()).await;
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    let files: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(files.len(), 1, "nothing else is left: {files:?}");
    drop(log.commands());
}
