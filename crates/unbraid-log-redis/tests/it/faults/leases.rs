//! Leases that expire while the server is away.

use super::*;

/// The gateway that judges a lease.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Judge {
    /// Looks at the lease all the time, as that of a reader does.
    Watches,
    /// Asks for nothing until the outage is over.
    Idle,
    /// Starts after the outage.
    IsNew,
}

/// A lease expires while the server is away. The producer, which lives, gets the time to renew it.
async fn check_lease_after(outage: impl AsyncFn(&Arc<RedisServer>), kind: Judge) {
    let Some(server) = RedisServer::new().map(Arc::new) else {
        return;
    };
    let producer = connect(&server).await;
    let mut judge = connect(&server).await;
    let (id, mut writer) = open(&producer).await;
    let watched = tokio::spawn({
        let (judge, id) = (judge.clone(), id.clone());
        async move {
            if kind == Judge::Watches {
                loop {
                    let _status = judge.seal_lost(&id).await;
                    sleep(Duration::from_millis(100)).await;
                }
            }
        }
    });
    outage(&server).await;
    if kind == Judge::IsNew {
        judge = connect(&server).await;
    }
    for _ in 0..5 {
        let status = judge.seal_lost(&id).await;
        let is_running = matches!(status, Ok(LogStatus::Running { .. }));
        let is_unknown = status.is_err_and(|error| error.is_temporary());
        assert!(is_running || is_unknown);
        sleep(Duration::from_millis(100)).await;
    }
    while writer
        .renew()
        .await
        .is_err_and(|error| error.is_temporary())
    {}
    assert_eq!(append(&mut *writer, &record(1, 1)).await, Ok(Appended::New));
    drop(producer);
    // A lease that nobody renews ends the stream all the same.
    let deadline = Instant::now() + 3 * LEASE + CALL;
    loop {
        let status = judge.seal_lost(&id).await;
        if let Ok(LogStatus::Ended { end, .. }) = &status {
            assert_eq!(end.end, End::ProducerLost);
            break;
        }
        assert!(Instant::now() < deadline, "{status:?}");
        sleep(Duration::from_millis(50)).await;
    }
    watched.abort();
}

#[tokio::test]
async fn a_lease_that_expires_while_the_server_is_down_proves_nothing() {
    let restart = async |server: &Arc<RedisServer>| {
        blocking(server, |server| server.kill()).await;
        sleep(LEASE + LEASE / 4).await;
        blocking(server, |server| server.start()).await;
    };
    for judge in [Judge::Watches, Judge::Idle, Judge::IsNew] {
        check_lease_after(restart, judge).await;
    }
}

#[tokio::test]
async fn a_lease_that_expires_while_the_server_is_suspended_proves_nothing() {
    let suspend = async |server: &Arc<RedisServer>| {
        blocking(server, |server| server.pause()).await;
        sleep(LEASE + LEASE / 4).await;
        blocking(server, |server| server.resume()).await;
    };
    for judge in [Judge::Watches, Judge::Idle, Judge::IsNew] {
        check_lease_after(suspend, judge).await;
    }
}

#[tokio::test]
async fn a_lease_that_expires_while_the_server_refuses_all_writes_proves_nothing() {
    let refuse = async |server: &Arc<RedisServer>| {
        let set = |value| server.command(&["CONFIG", "SET", "min-replicas-to-write", value]);
        assert_eq!(set("1"), "+OK");
        sleep(LEASE + LEASE / 4).await;
        assert_eq!(set("0"), "+OK");
    };
    for judge in [Judge::Watches, Judge::Idle] {
        check_lease_after(refuse, judge).await;
    }
}

/// The function of the scripts alone, because no command moves the server's clock.
#[tokio::test]
async fn a_missing_lease_proves_nothing_if_the_clock_is_later_than_it_can_be() {
    let Some(server) = RedisServer::new() else {
        return;
    };
    let script = concat!(
        include_str!("../../../src/lua/doubtful.lua"),
        "return is_doubtful(ARGV[1], ARGV[2]) and 1 or 0"
    );
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now = now.unwrap().as_micros();
    let hour = 3_600_000_000;
    for (lease, latest, expected) in [
        ("0", now + hour, ":0"),
        ("0", now - hour, ":1"),
        ("3600000", now + hour, ":1"),
        // Nothing is known of the clock.
        ("0", u128::from(u64::MAX), ":0"),
    ] {
        let latest = latest.to_string();
        let answer = server.command(&["EVAL", script, "0", lease, &latest]);
        assert_eq!(answer, expected, "{lease} {latest}");
    }
    // Neither does a claim that is missing.
    let script = concat!(
        include_str!("../../../src/lua/doubtful.lua"),
        include_str!("../../../src/lua/claim.lua")
    );
    let claim = |latest: u128| {
        let latest = latest.to_string();
        let keys = ["EVAL", script, "2", "c", "l"];
        let arguments = ["value", "id", "1000", "1000", "", &latest];
        server.command(&[&keys[..], &arguments].concat())
    };
    assert_eq!(claim(now - hour), "-CLOCK the clock has been moved");
    assert_eq!(server.command(&["EXISTS", "c", "l"]), ":0");
    assert!(!claim(now + hour).starts_with('-'));
    assert_eq!(server.command(&["EXISTS", "c", "l"]), ":2");
}
