//! What is found at the start, before anything is written.

use std::time::Duration;

use futures::StreamExt;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    time::Instant,
};
use unbraid_log::{Claim, ClaimKey, Command, End, LogStore, StreamEnd, StreamId};
use unbraid_log_redis::{ConnectError, RedisLog, RedisOptions};
use unbraid_testkit::servers::{RedisServer, free_port};

use crate::support::{append, meta, read_all, record};

async fn connect(url: &str) -> Result<RedisLog, ConnectError> {
    RedisLog::connect(url, RedisOptions::default()).await
}

#[track_caller]
fn check(connected: Result<RedisLog, ConnectError>, expected: ConnectError) {
    let error = connected.expect_err("the server cannot be used");
    assert_eq!(error, expected);
    let shown = format!("{error} {error:?}");
    assert!(!shown.contains("secret"), "{shown}");
}

/// A server that gives one answer to everything.
async fn fake(answer: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut request = [0; 1024];
                while let Ok(1..) = client.read(&mut request).await {
                    let _sent = client.write_all(answer.as_bytes()).await;
                }
            });
        }
    });
    format!("redis://{address}")
}

#[tokio::test]
async fn a_url_of_another_kind_is_refused() {
    for url in [
        "http://:secret@h",
        "localhost:6379",
        "redis://",
        "rediss://h/#insecure",
    ] {
        let error = connect(url).await.unwrap_err();
        assert!(
            matches!(error, ConnectError::InvalidUrl { .. }),
            "{url}: {error}"
        );
        assert!(!error.to_string().contains("secret"));
    }
}

#[tokio::test]
async fn a_prefix_that_would_change_the_hash_slot_is_refused() {
    for prefix in ["", "{a}", "a\nb"] {
        let options = RedisOptions::default().with_prefix(prefix);
        let error = RedisLog::connect("redis://127.0.0.1", options).await;
        assert!(
            matches!(error, Err(ConnectError::InvalidOption { .. })),
            "{prefix:?}"
        );
    }
}

#[tokio::test]
async fn a_port_without_a_server_is_unreachable() {
    let address = format!("127.0.0.1:{}", free_port());
    let expected = ConnectError::Unreachable {
        address: address.clone(),
        reason: "connection refused".to_owned(),
    };
    assert!(expected.is_temporary());
    check(
        connect(&format!("redis://:secret@{address}")).await,
        expected,
    );
}

#[tokio::test]
async fn a_name_that_cannot_be_resolved_is_reported_as_such() {
    check(
        connect("redis://no-such-host.invalid:1").await,
        ConnectError::Unreachable {
            address: "no-such-host.invalid:1".to_owned(),
            reason: "the host's name cannot be resolved".to_owned(),
        },
    );
}

#[tokio::test]
async fn a_server_that_never_answers_is_unreachable() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let started = Instant::now();
    let expected = ConnectError::Unreachable {
        address: address.clone(),
        reason: "the server does not answer".to_owned(),
    };
    check(connect(&format!("redis://{address}")).await, expected);
    assert!(started.elapsed() < Duration::from_secs(10));
}

#[tokio::test]
async fn a_server_of_another_kind_is_not_redis() {
    for answer in [
        "HTTP/1.1 400 Bad Request\r\n\r\n",
        "+OK\r\n",
        "$3\r\nabc\r\n",
    ] {
        let url = fake(answer).await;
        let address = url.strip_prefix("redis://").unwrap().to_owned();
        check(connect(&url).await, ConnectError::NotRedis { address });
    }
}

#[tokio::test]
async fn an_old_server_is_refused() {
    let info = "$22\r\nredis_version:6.2.14\r\n\r\n";
    let version = "6.2.14".to_owned();
    check(
        connect(&fake(info).await).await,
        ConnectError::OldServer { version },
    );
}

#[tokio::test]
async fn a_wrong_password_is_refused() {
    let Some(server) = RedisServer::start_with(&["--requirepass", "right"]) else {
        return;
    };
    let url = |login: &str| format!("redis://{login}127.0.0.1:{}", server.port());
    for login in ["", ":secret@", "nobody:secret@"] {
        check(connect(&url(login)).await, ConnectError::Unauthorized);
    }
    assert!(connect(&url(":right@")).await.is_ok());
}

#[tokio::test]
async fn a_user_without_permission_is_refused() {
    let Some(server) = RedisServer::new() else {
        return;
    };
    let url = format!("redis://user:secret@127.0.0.1:{}", server.port());
    for (command, rules) in [
        ("INFO", &["+@all", "-info", "~*"][..]),
        ("EVAL", &["+@all", "-@scripting", "~*"]),
        ("XADD", &["+@all", "-xadd", "~*"]),
        ("DEL", &["+@all", "-del", "~*"]),
        ("XREAD", &["+@all", "-xread", "~*"]),
        ("SCRIPT|LOAD", &["+@all", "-script|load", "~*"]),
        ("EVALSHA", &["+@all", "-evalsha", "~*"]),
        (
            "XLEN",
            &["+@all", "-@read", "+info", "+exists", "+pttl", "~*"],
        ),
        ("EVAL", &["+@all", "~other:*"]),
    ] {
        let set = ["ACL", "SETUSER", "user", "reset", "on", ">secret"];
        assert_eq!(server.command(&[&set, rules].concat()), "+OK");
        check(connect(&url).await, ConnectError::NotPermitted { command });
    }
    let set = ["ACL", "SETUSER", "user", "~unbraid:*"];
    assert_eq!(server.command(&set), "+OK");
    assert!(connect(&url).await.is_ok());
}

#[tokio::test]
async fn a_database_that_does_not_exist_is_refused() {
    let Some(server) = RedisServer::new() else {
        return;
    };
    let reason = "the server has no such database";
    let error = ConnectError::InvalidUrl { reason };
    check(connect(&format!("{}/99", server.url())).await, error);
    assert!(connect(&format!("{}/3", server.url())).await.is_ok());
    assert!(connect(&server.unix_url()).await.is_ok());
}

#[tokio::test]
async fn a_node_of_a_cluster_is_refused() {
    let Some(server) = RedisServer::start_with(&["--cluster-enabled", "yes"]) else {
        return;
    };
    check(connect(&server.url()).await, ConnectError::Cluster);
}

#[tokio::test]
async fn a_configuration_that_loses_streams_is_warned_about() {
    let Some(server) = RedisServer::new() else {
        return;
    };
    let log = connect(&server.url()).await.unwrap();
    assert!(log.warnings().is_empty(), "{:?}", log.warnings());
    assert_eq!(
        server.command(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]),
        "+OK"
    );
    let warnings = connect(&server.url()).await.unwrap().warnings();
    assert!(matches!(&warnings[..], [one] if one.contains("maxmemory-policy noeviction")));
}

/// The rules that the documentation recommends.
#[tokio::test]
async fn a_user_with_the_documented_permissions_can_use_everything() {
    let Some(server) = RedisServer::new() else {
        return;
    };
    let set = [
        "ACL",
        "SETUSER",
        "user",
        "reset",
        "on",
        ">right",
        "~unbraid:*",
    ];
    let rules = "+@read +@write +@stream +@scripting +@connection -@dangerous +info +wait";
    let rules: Vec<&str> = rules.split(' ').collect();
    assert_eq!(server.command(&[&set[..], &rules].concat()), "+OK");
    let url = format!("redis://user:right@127.0.0.1:{}", server.port());
    let (log, other) = (connect(&url).await.unwrap(), connect(&url).await.unwrap());
    let claim = ClaimKey::new("alice", "/", "k", [0; 32]);
    let id = StreamId::random().unwrap();
    assert_eq!(log.claim(&claim, &id).await, Ok(Claim::Acquired));
    let mut writer = log.open(&id, &meta().with_claim(claim)).await.unwrap();
    let reader = tokio::spawn({
        let (other, id) = (other.clone(), id.clone());
        async move { read_all(&other, &id).await }
    });
    let command = Command::Cancel(None);
    assert_eq!(other.send_command(&id, command).await, Ok(()));
    assert_eq!(log.commands().next().await, Some((id.clone(), command)));
    // The reader has caught up, and waits.
    tokio::time::sleep(Duration::from_millis(300)).await;
    append(&mut *writer, &record(1, 2)).await.unwrap();
    assert_eq!(writer.renew().await, Ok(()));
    assert_eq!(writer.seal(&StreamEnd::new(End::Finished)).await, Ok(()));
    assert_eq!(reader.await.unwrap(), Ok(vec![1, 2]));
    assert_eq!(other.erase(&id).await, Ok(()));
}
