//! Several runtimes use one log.

use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use unbraid_log::{Appended, End, StreamEnd};
use unbraid_testkit::servers::RedisServer;

use crate::support::{PATIENCE, append, connect, open, read_all, record};

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// The connections to the server, that of this question included.
fn connections(server: &RedisServer) -> usize {
    server.command(&["CLIENT", "LIST"]).lines().count()
}

#[track_caller]
fn wait_for_connections(server: &RedisServer, expected: usize) {
    let mut patience = PATIENCE;
    while connections(server) != expected {
        let pause = Duration::from_millis(20);
        std::thread::sleep(pause);
        patience = patience.checked_sub(pause).expect("as many connections");
    }
}

#[test]
fn each_runtime_has_a_connection_as_long_as_it_exists() {
    let Some(server) = RedisServer::new() else {
        return;
    };
    let first = runtime();
    let log = first.block_on(connect(&server));
    let before = connections(&server);
    for _ in 0..3 {
        let other = runtime();
        let (id, mut writer) = other.block_on(open(&log));
        for seq in 1..=2 {
            let appended = other.block_on(append(&mut *writer, &record(seq, seq)));
            assert_eq!(appended, Ok(Appended::New));
        }
        wait_for_connections(&server, before + 1);
        drop(other);
        wait_for_connections(&server, before);
        let appended = first.block_on(append(&mut *writer, &record(3, 3)));
        assert_eq!(appended, Ok(Appended::New));
        let sealed = first.block_on(writer.seal(&StreamEnd::new(End::Finished)));
        assert_eq!(sealed, Ok(()));
        assert_eq!(first.block_on(read_all(&log, &id)), Ok(vec![1, 2, 3]));
    }
}
