//! A server with another `maxmemory-policy` than `noeviction`, which removes any key.

use super::*;

#[tokio::test]
async fn keys_that_are_evicted_again_and_again_cost_no_reader_an_event() {
    let Some(server) = RedisServer::new() else {
        return;
    };
    for roles in ["log", "log lease", "lease"] {
        check(&server.url(), 200, async || {
            for role in roles.split(' ') {
                let script = "return redis.call('DEL', redis.call('KEYS', ARGV[1])[1])";
                let keys = format!("unbraid:*:{role}");
                assert_eq!(server.command(&["EVAL", script, "0", &keys]), ":1");
            }
        })
        .await;
        assert_eq!(server.command(&["FLUSHALL"]), "+OK");
    }
}

#[tokio::test]
async fn the_log_of_a_running_stream_that_was_evicted_is_written_again() {
    let Some(server) = RedisServer::new() else {
        return;
    };
    let (log, other) = (connect(&server).await, connect(&server).await);
    let (id, mut writer) = open(&log).await;
    for seq in 1..=2 {
        append(&mut *writer, &record(seq, seq)).await.unwrap();
    }
    let evict = || {
        let [key, lease] = ["log", "lease"].map(|role| format!("unbraid:{{{id}}}:{role}"));
        assert!(server.command(&["DEL", &key, &lease]) != ":0");
    };
    evict();
    let status = other.status(&id).await;
    assert!(
        status.as_ref().is_err_and(LogError::is_temporary),
        "{status:?}"
    );
    let gap = writer.append(&record(3, 3)).await;
    assert!(
        matches!(gap, Err(LogError::Gap { tail: Seq(0), .. })),
        "{gap:?}"
    );
    for seq in 1..=3 {
        assert_eq!(writer.append(&record(seq, seq)).await, Ok(Appended::New));
    }
    assert_eq!(running_tail(&other, &id).await, Seq(3));
    // A renewal alone creates it, and the next append finds where it ends.
    evict();
    writer.renew().await.unwrap();
    assert_eq!(running_tail(&other, &id).await, Seq(0));
    let end = StreamEnd::new(End::Finished);
    let sealed = writer.seal(&end).await;
    assert!(matches!(sealed, Err(LogError::Gap { .. })), "{sealed:?}");
    append(&mut *writer, &record(1, 3)).await.unwrap();
    writer.seal(&end).await.unwrap();
    // After its end, a log that is missing has expired.
    evict();
    let status = other.status(&id).await;
    assert!(
        matches!(status, Ok(LogStatus::Expired { .. })),
        "{status:?}"
    );
    assert_eq!(writer.append(&record(4, 4)).await, Err(LogError::Expired));
}

#[tokio::test]
async fn an_evicted_log_that_is_erased_is_not_written_again() {
    let Some(server) = RedisServer::new() else {
        return;
    };
    let (log, other) = (connect(&server).await, connect(&server).await);
    let (id, mut writer) = open(&log).await;
    append(&mut *writer, &record(1, 1)).await.unwrap();
    let key = format!("unbraid:{{{id}}}:log");
    assert_eq!(server.command(&["DEL", &key]), ":1");
    other.erase(&id).await.unwrap();
    assert_eq!(writer.append(&record(2, 2)).await, Err(LogError::Expired));
    assert_eq!(writer.renew().await, Err(LogError::Expired));
    let status = other.status(&id).await;
    assert!(
        matches!(status, Ok(LogStatus::Expired { .. })),
        "{status:?}"
    );
}

async fn running_tail(log: &RedisLog, id: &StreamId) -> Seq {
    match log.status(id).await {
        Ok(LogStatus::Running { tail, .. }) => tail,
        other => panic!("{other:?}"),
    }
}

/// The holders of the stream and of the key live.
#[tokio::test]
async fn an_evicted_lease_proves_nothing() {
    let Some(server) = RedisServer::new() else {
        return;
    };
    let (log, other) = (connect(&server).await, connect(&server).await);
    let claim = ClaimKey::new("alice", "/", "k", [0; 32]);
    let (id, next) = (StreamId::random().unwrap(), StreamId::random().unwrap());
    assert_eq!(log.claim(&claim, &id).await, Ok(Claim::Acquired));
    let (stream, mut writer) = open(&log).await;
    // Until the lease of a server that was started a moment ago can prove something.
    let started = Instant::now();
    while started.elapsed() < 3 * LEASE {
        assert_eq!(log.claim(&claim, &id).await, Ok(Claim::Acquired));
        writer.renew().await.unwrap();
        let script =
            "for _, key in ipairs(redis.call('KEYS', '*lease*')) do redis.call('DEL', key) end";
        assert_eq!(server.command(&["EVAL", script, "0"]), "$-1");
        for _ in 0..3 {
            let status = other.seal_lost(&stream).await;
            assert!(
                matches!(status, Ok(LogStatus::Running { .. })),
                "{status:?}"
            );
            let held = other.claim(&claim, &next).await;
            assert!(matches!(held, Ok(Claim::Held { .. })), "{held:?}");
            sleep(LEASE / 15).await;
        }
    }
}

/// A stream that is over is never written again, however long its log is kept.
#[tokio::test]
async fn the_evicted_log_of_an_ended_stream_is_over() {
    let Some(server) = RedisServer::new() else {
        return;
    };
    const DAY: u64 = 24 * 3600;
    for seconds in [1, DAY, 30 * DAY, 5_000 * DAY] {
        let ttl = Duration::from_secs(seconds);
        let url = server.url();
        let log = RedisLog::connect(&url, options().with_ttl(ttl)).await;
        let log = log.unwrap();
        let (id, mut writer) = open(&log).await;
        append(&mut *writer, &record(1, 1)).await.unwrap();
        writer
            .seal(&StreamEnd::new(End::ProducerLost))
            .await
            .unwrap();
        let key = format!("unbraid:{{{id}}}:log");
        assert_eq!(server.command(&["DEL", &key]), ":1");
        assert_eq!(writer.renew().await, Err(LogError::Expired));
        let appended = writer.append(&record(2, 2)).await;
        assert_eq!(appended, Err(LogError::Expired));
        let status = log.status(&id).await;
        assert!(
            matches!(status, Ok(LogStatus::Expired { .. })),
            "{status:?}"
        );
    }
}

/// Its time to live would otherwise be that of a stream whose lease is renewed, for days.
#[tokio::test]
async fn a_stream_of_a_gateway_with_a_longer_ttl_is_declared_lost() {
    let Some(server) = RedisServer::new() else {
        return;
    };
    let long = options().with_ttl(Duration::from_secs(48 * 3600));
    let log = RedisLog::connect(&server.url(), long).await.unwrap();
    let other = connect(&server).await;
    let (id, mut writer) = open(&log).await;
    append(&mut *writer, &record(1, 1)).await.unwrap();
    drop(writer);
    let started = Instant::now();
    loop {
        let status = other.seal_lost(&id).await;
        if matches!(status, Ok(LogStatus::Ended { .. })) {
            break;
        }
        assert!(started.elapsed() < 5 * LEASE, "{status:?}");
        sleep(LEASE / 10).await;
    }
}
