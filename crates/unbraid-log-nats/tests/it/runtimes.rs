//! Several runtimes use one log.

use std::{fs, thread, time::Duration};

use tokio::runtime::{Builder, Runtime};
use unbraid_log::{Appended, End, LogStore, StreamEnd};
use unbraid_testkit::servers::nats::NatsServer;

use crate::support::{connect, meta, new_id, record, server};

fn runtime() -> Runtime {
    Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap()
}

/// The connections that the system knows of this server; the state 01 is an established one.
fn connections(server: &NatsServer) -> usize {
    let port = format!(":{:04X}", server.port());
    let table = fs::read_to_string("/proc/net/tcp").unwrap();
    let is_ours = |line: &&str| {
        let mut columns = line.split_whitespace().skip(1);
        let local = columns.next().unwrap_or_default();
        local.ends_with(&port) && columns.nth(1) == Some("01")
    };
    table.lines().filter(is_ours).count()
}

#[track_caller]
fn wait_for_connections(server: &NatsServer, expected: usize) {
    for _ in 0..1500 {
        if connections(server) == expected {
            return;
        }
        thread::sleep(Duration::from_millis(20));
    }
    panic!("{} connections", connections(server));
}

#[test]
fn each_runtime_appends_on_a_connection_of_its_own() {
    if !cfg!(target_os = "linux") {
        return; // the table of connections is that of Linux
    }
    let first = runtime();
    let Some(server) = first.block_on(server()) else {
        return;
    };
    let log = first.block_on(connect(&server));
    wait_for_connections(&server, 1);
    for _ in 0..3 {
        let other = runtime();
        let mut writer = other.block_on(log.open(&new_id(), &meta())).unwrap();
        let mut append = |runtime: &Runtime, seq| {
            let appended = runtime.block_on(writer.append(&record(seq, seq)));
            assert_eq!(appended, Ok(Appended::New));
        };
        append(&other, 1);
        wait_for_connections(&server, 2);
        append(&other, 2);
        drop(other);
        wait_for_connections(&server, 1);
        append(&first, 3);
        let sealed = first.block_on(writer.seal(&StreamEnd::new(End::Finished)));
        assert_eq!(sealed, Ok(()));
    }
    drop(log);
    wait_for_connections(&server, 0);
}
