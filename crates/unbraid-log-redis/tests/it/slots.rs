//! Hash slots: a cluster requires that all keys of a command, and of a script, share one.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{BufRead, BufReader, Write},
    net::TcpStream,
    sync::mpsc::{Receiver, channel},
    thread,
    time::Duration,
};

use futures::{StreamExt, stream::BoxStream};
use tokio::time::timeout;
use unbraid_log::{ClaimKey, Command, End, LogError, LogStore, Record, Seq, StreamEnd, StreamId};
use unbraid_log_redis::RedisLog;
use unbraid_testkit::servers::RedisServer;

use crate::support::{LEASE, PATIENCE, append, connect, meta, open, options, read_all, record};

/// The slot of a key: CRC16 (XMODEM) of its hash tag, or of all of it, as the specification of Redis Cluster says.
fn slot(key: &str) -> u16 {
    let tag = key.split_once('{').and_then(|(_, rest)| {
        let (tag, _) = rest.split_once('}')?;
        (!tag.is_empty()).then_some(tag)
    });
    let crc = tag.unwrap_or(key).bytes().fold(0_u16, |crc, byte| {
        (0..8).fold(crc ^ (u16::from(byte) << 8), |crc, _| match crc >> 15 {
            1 => (crc << 1) ^ 0x1021,
            _ => crc << 1,
        })
    });
    crc % 16_384
}

#[test]
fn slots_are_those_of_the_specification() {
    // CRC16 of 123456789 is 0x31C3; the others are the examples of the specification.
    assert_eq!(slot("123456789"), 0x31C3);
    assert_eq!(slot("{user1000}.following"), slot("{user1000}.followers"));
    assert_eq!(slot("foo{}{bar}"), slot("foo{}{bar}"));
    assert_ne!(slot("foo{}{bar}"), slot("bar"));
    assert_eq!(slot("foo{{bar}}zap"), slot("{bar"));
    assert_eq!(slot("foo{bar}{zap}"), slot("bar"));
}

/// Everything that a server carries out, one line each, commands of scripts included.
fn monitor(server: &RedisServer) -> Receiver<String> {
    let mut connection = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    connection.write_all(b"MONITOR\r\n").unwrap();
    let mut lines = BufReader::new(connection).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "+OK");
    let (sender, receiver) = channel();
    thread::spawn(move || {
        // Until the server or the test ends.
        while let Some(Ok(line)) = lines.next() {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

/// The words of a line such as `+1.5 [0 lua] "XADD" "a \"key\"" "\x01"`.
fn words(line: &str) -> Vec<String> {
    let (_, rest) = line.split_once("] ").unwrap();
    let (mut words, mut word) = (Vec::new(), None::<String>);
    let mut chars = rest.chars();
    while let Some(char) = chars.next() {
        match (&mut word, char) {
            (None, '"') => word = Some(String::new()),
            (None, _) => {}
            (Some(_), '"') => words.extend(word.take()),
            (Some(word), '\\') => {
                word.push('\\');
                word.extend(chars.next());
            }
            (Some(word), char) => word.push(char),
        }
    }
    words
}

/// The keys of a command. A command that the test does not know has to be added here.
fn keys(words: &[String]) -> &[String] {
    let (name, arguments) = words.split_first().unwrap();
    match &*name.to_uppercase() {
        "EVALSHA" | "EVAL" => {
            let count: usize = arguments[1].parse().unwrap();
            &arguments[2..2 + count]
        }
        "XREAD" => {
            let is_streams = |word: &String| word.to_uppercase() == "STREAMS";
            let streams = arguments.iter().position(is_streams).unwrap() + 1;
            let count = (arguments.len() - streams) / 2;
            &arguments[streams..streams + count]
        }
        "DEL" | "UNLINK" | "EXISTS" => arguments,
        "SET" | "GET" | "XADD" | "XRANGE" | "XREVRANGE" | "XDEL" | "XLEN" | "PTTL" | "PEXPIRE" => {
            &arguments[..1]
        }
        "INFO" | "SCRIPT" | "PING" | "CLIENT" | "HELLO" | "WAIT" | "SELECT" => &[],
        other => panic!("the keys of {other} are not known"),
    }
}

async fn read_one_of_each(readers: &mut [BoxStream<'static, Result<Record, LogError>>]) {
    for reader in readers {
        let record = timeout(PATIENCE, reader.next()).await.unwrap();
        record.unwrap().unwrap();
    }
}

/// Reads what is there, after which the readers follow their streams.
async fn follow_all(readers: &mut [BoxStream<'static, Result<Record, LogError>>]) {
    for reader in readers {
        while let Ok(Some(record)) = timeout(Duration::from_millis(300), reader.next()).await {
            record.unwrap();
        }
    }
}

/// Every call of a log, with claims, commands, a loss, and readers of several streams at once.
async fn use_everything(log: &RedisLog, other: &RedisLog) {
    let claim = ClaimKey::new("alice", "/v1/completions", "k", [7; 32]);
    let claimed = StreamId::random().unwrap();
    log.claim(&claim, &claimed).await.unwrap();
    other
        .claim(&claim, &StreamId::random().unwrap())
        .await
        .unwrap();
    let meta = meta().with_claim(claim.clone());
    let mut writer = log.open(&claimed, &meta).await.unwrap();
    let mut streams = vec![open(log).await, open(log).await];
    let mut readers: Vec<_> = streams
        .iter()
        .map(|(id, _)| other.read(id, Seq::START))
        .collect();
    for (_, writer) in &mut streams {
        append(&mut **writer, &record(1, 2)).await.unwrap();
    }
    read_one_of_each(&mut readers).await;
    for (_, writer) in &mut streams {
        append(&mut **writer, &record(3, 3)).await.unwrap();
        // Other boundaries: what is there is compared, and the rest is appended.
        append(&mut **writer, &record(3, 4)).await.unwrap();
        writer.renew().await.unwrap();
    }
    follow_all(&mut readers).await;
    let mut commands = log.commands();
    other
        .send_command(&claimed, Command::Cancel(None))
        .await
        .unwrap();
    timeout(PATIENCE, commands.next()).await.unwrap();
    let (lost, _) = open(log).await;
    tokio::time::sleep(LEASE + Duration::from_millis(200)).await;
    other.seal_lost(&lost).await.unwrap();
    for (id, writer) in &mut streams {
        writer.seal(&StreamEnd::new(End::Finished)).await.unwrap();
        read_all(other, id).await.unwrap();
        other.status(id).await.unwrap();
    }
    writer.seal(&StreamEnd::new(End::Finished)).await.unwrap();
    other.erase(&claimed).await.unwrap();
    log.release(&claim, &claimed).await.unwrap();
}

#[tokio::test]
async fn the_keys_of_every_command_and_script_share_a_hash_slot() {
    let Some(server) = RedisServer::new() else {
        return;
    };
    let lines = monitor(&server);
    let (log, other) = (connect(&server).await, connect(&server).await);
    use_everything(&log, &other).await;
    // `WAIT` has no key, and what it covers is one connection's.
    let replicated = RedisLog::connect(&server.url(), options().with_replicas(1))
        .await
        .unwrap();
    let (_, mut unconfirmed) = open(&replicated).await;
    assert!(unconfirmed.append(&record(1, 1)).await.is_err());
    drop(unconfirmed);
    drop((log, other, replicated));
    tokio::time::sleep(Duration::from_millis(200)).await;

    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut script = BTreeSet::new();
    let mut split = BTreeSet::new();
    while let Ok(line) = lines.try_recv() {
        let words = words(&line);
        let name = words[0].to_uppercase();
        let slots: BTreeSet<u16> = keys(&words).iter().map(|key| slot(key)).collect();
        if line.contains(" lua] ") {
            // The keys that a script uses are those that it was given.
            assert!(slots.is_subset(&script), "{name} of a script: {words:?}");
        } else if name.starts_with("EVAL") {
            script.clone_from(&slots);
        }
        if slots.len() > 1 {
            split.insert(name.clone());
        }
        *seen.entry(name).or_default() += 1;
    }
    // The connection of readers, which follows several streams at once: the reason why a cluster is refused.
    assert_eq!(split, BTreeSet::from(["XREAD".to_owned()]));
    for name in [
        "EVALSHA",
        "SET",
        "XADD",
        "XRANGE",
        "XREVRANGE",
        "XDEL",
        "XLEN",
        "DEL",
        "UNLINK",
        "WAIT",
    ] {
        assert!(seen.contains_key(name), "{name} is not tested: {seen:?}");
    }
    // All scripts were loaded, and so they were called; and one by each log that checks its permissions.
    assert_eq!(seen.get("SCRIPT"), Some(&(12 + 3)), "{seen:?}");
}
