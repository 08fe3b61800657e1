//! Claims whose stream is not open, and streams that a server which was away does not have.

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, sleep};
use unbraid_log::{
    Claim, ClaimKey, LogError, LogStatus, LogStore, StreamId, internal::REPAIR_TIME,
};
use unbraid_log_redis::RedisLog;
use unbraid_testkit::servers::{Proxy, RedisServer};

use crate::support::{LEASE, PATIENCE, blocking, connect, meta, options};

const MARGIN: Duration = Duration::from_millis(300);

fn key() -> ClaimKey {
    ClaimKey::new("alice", "/v1/completions", "k", [7; 32])
}

fn new_id() -> StreamId {
    StreamId::random().unwrap()
}

/// Claims until the server answers.
async fn claim(log: &RedisLog, id: &StreamId) -> Claim {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match log.claim(&key(), id).await {
            Err(error) if error.is_temporary() && Instant::now() < deadline => {
                sleep(Duration::from_millis(20)).await;
            }
            claimed => return claimed.unwrap(),
        }
    }
}

/// Claims again and again, as a request that waits does. Returns how long another id has held the key.
async fn wait(log: &RedisLog, id: &StreamId, holder: &StreamId) -> Duration {
    let started = Instant::now();
    loop {
        match claim(log, id).await {
            Claim::Acquired => return started.elapsed(),
            claimed => assert_eq!(claimed, held(holder)),
        }
        assert!(started.elapsed() < PATIENCE);
        sleep(Duration::from_millis(100)).await;
    }
}

fn held(id: &StreamId) -> Claim {
    Claim::Held {
        id: id.clone(),
        fingerprint: [7; 32],
    }
}

#[tokio::test]
async fn a_claim_that_is_not_repeated_is_void_after_a_lease_and_its_holder_learns_it() {
    let Some(server) = RedisServer::new() else {
        return;
    };
    let (log, other) = (connect(&server).await, connect(&server).await);
    // No lease is judged before the server has been up for one.
    sleep(LEASE + Duration::from_secs(1)).await;
    let (first, second) = (new_id(), new_id());
    assert_eq!(claim(&log, &first).await, Claim::Acquired);
    sleep(LEASE - 2 * MARGIN).await;
    assert_eq!(claim(&other, &second).await, held(&first));
    assert_eq!(claim(&log, &first).await, Claim::Acquired, "repeated");
    let waited = wait(&other, &second, &first).await;
    assert!((LEASE - MARGIN..LEASE * 2).contains(&waited), "{waited:?}");
    assert_eq!(claim(&log, &first).await, held(&second));
    // What the first one does afterwards changes nothing.
    let meta = meta().with_claim(key());
    let _opened = log.open(&first, &meta).await.unwrap();
    log.release(&key(), &first).await.unwrap();
    assert_eq!(claim(&log, &new_id()).await, held(&second));
    assert_eq!(claim(&other, &second).await, Claim::Acquired);
}

#[tokio::test]
async fn a_claim_is_not_void_because_the_server_was_down() {
    let Some(server) = RedisServer::new().map(Arc::new) else {
        return;
    };
    let (log, other) = (connect(&server).await, connect(&server).await);
    let (first, second) = (new_id(), new_id());
    assert_eq!(claim(&log, &first).await, Claim::Acquired);
    blocking(&server, RedisServer::kill).await;
    sleep(LEASE + MARGIN).await;
    blocking(&server, RedisServer::start).await;
    assert_eq!(claim(&other, &second).await, held(&first));
    let late = connect(&server).await;
    assert_eq!(
        claim(&late, &second).await,
        held(&first),
        "it has seen no outage"
    );
    assert_eq!(claim(&log, &first).await, Claim::Acquired);
}

#[tokio::test]
async fn a_claim_is_not_void_because_a_gateway_was_cut_off() {
    let Some(server) = RedisServer::new() else {
        return;
    };
    let proxy = Proxy::start(format!("127.0.0.1:{}", server.port())).await;
    let url = format!("redis://{}", proxy.address());
    let (log, other) = (
        connect(&server).await,
        RedisLog::connect(&url, options()).await.unwrap(),
    );
    sleep(LEASE + Duration::from_secs(1)).await;
    let (first, second) = (new_id(), new_id());
    assert_eq!(claim(&log, &first).await, Claim::Acquired);
    proxy.hold(true);
    assert!(other.claim(&key(), &second).await.is_err());
    sleep(LEASE + MARGIN).await;
    proxy.hold(false);
    // The holder may have been as far from the server.
    assert_eq!(claim(&other, &second).await, held(&first));
    let waited = wait(&other, &second, &first).await;
    assert!((LEASE - MARGIN..LEASE * 2).contains(&waited), "{waited:?}");
}

/// Makes all claims last for a day, as those of running streams do. What follows the seal of a stream has not arrived then.
fn keep_claims(server: &RedisServer) {
    let script = "for _, key in ipairs(redis.call('KEYS', 'unbraid:claim:*')) do
        redis.call('PEXPIRE', key, 86400000)
    end
    return #redis.call('KEYS', 'unbraid:claim:*')";
    assert_eq!(server.command(&["EVAL", script, "0"]), ":1");
}

/// For how many milliseconds the only claim is kept.
fn claim_ttl(server: &RedisServer) -> u64 {
    let script = "return redis.call('PTTL', redis.call('KEYS', 'unbraid:claim:*')[1])";
    let answer = server.command(&["EVAL", script, "0"]);
    answer.strip_prefix(':').unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_claim_ends_with_its_stream_although_the_gateway_that_sealed_it_was_interrupted() {
    let Some(server) = RedisServer::new() else {
        return;
    };
    let ttl = Duration::from_secs(6);
    let connect = || async {
        let options = options().with_ttl(ttl);
        RedisLog::connect(&server.url(), options).await.unwrap()
    };
    let (log, other) = (connect().await, connect().await);
    let (id, next) = (new_id(), new_id());
    assert_eq!(claim(&log, &id).await, Claim::Acquired);
    let meta = meta().with_claim(key());
    drop(log.open(&id, &meta).await.unwrap());
    let deadline = Instant::now() + PATIENCE;
    while !matches!(other.seal_lost(&id).await, Ok(LogStatus::Ended { .. })) {
        assert!(Instant::now() < deadline);
        sleep(Duration::from_millis(100)).await;
    }
    let limit = u64::try_from(ttl.as_millis()).unwrap();
    assert!(claim_ttl(&server) <= limit);
    keep_claims(&server);
    // Another reader finds the end.
    let status = other.seal_lost(&id).await;
    assert!(matches!(status, Ok(LogStatus::Ended { .. })), "{status:?}");
    assert!(claim_ttl(&server) <= limit);
    assert_eq!(claim(&other, &next).await, held(&id));
    // Nobody reads it any more.
    keep_claims(&server);
    sleep(ttl + MARGIN).await;
    let status = other.status(&id).await;
    assert!(
        matches!(status, Ok(LogStatus::Expired { .. })),
        "{status:?}"
    );
    assert_eq!(claim(&other, &next).await, Claim::Acquired);
    assert_eq!(claim(&log, &id).await, held(&next));
}

/// How often the server was asked about itself. Each call is one more.
fn info_calls(server: &RedisServer) -> u64 {
    let stats = server.command(&["INFO", "commandstats"]);
    let calls = stats.split_once("cmdstat_info:calls=").unwrap().1;
    calls.split_once(',').unwrap().0.parse().unwrap()
}

/// The connection that has found the server to be old is lost with it, which nobody has noticed before the claim.
#[tokio::test]
async fn a_server_that_was_just_started_again_gives_no_key_away() {
    let Some(server) = RedisServer::new().map(Arc::new) else {
        return;
    };
    let (log, other) = (connect(&server).await, connect(&server).await);
    sleep(REPAIR_TIME + Duration::from_secs(1)).await;
    assert!(!other.may_lack_streams().await);
    let (first, second) = (new_id(), new_id());
    assert_eq!(claim(&log, &first).await, Claim::Acquired);
    // A holder that runs would write its claim again, before or after this one.
    drop(log);
    blocking(&server, RedisServer::kill).await;
    blocking(&server, RedisServer::delete_data).await;
    blocking(&server, RedisServer::start).await;
    let claimed = other.claim(&key(), &second).await;
    assert!(
        matches!(claimed, Err(LogError::Unavailable { .. })),
        "{claimed:?}"
    );
    sleep(REPAIR_TIME + Duration::from_secs(1)).await;
    assert_eq!(claim(&other, &second).await, Claim::Acquired);
}

#[tokio::test]
async fn a_server_that_was_away_may_lack_a_stream_until_its_producer_has_written_it() {
    let Some(server) = RedisServer::new().map(Arc::new) else {
        return;
    };
    let (producer, reader) = (connect(&server).await, connect(&server).await);
    sleep(REPAIR_TIME + Duration::from_secs(1)).await;
    assert!(!reader.may_lack_streams().await);
    // Once on each connection is enough.
    let before = info_calls(&server);
    for _ in 0..20 {
        assert!(!reader.may_lack_streams().await);
    }
    let own = 1;
    assert_eq!(info_calls(&server) - before, own);
    blocking(&server, RedisServer::kill).await;
    let id = new_id();
    let opened = producer.open(&id, &meta()).await;
    assert!(opened.is_err_and(|error| error.is_temporary()));
    blocking(&server, RedisServer::start).await;
    let started = Instant::now();
    let late = connect(&server).await;
    for gateway in [&reader, &late] {
        let status = loop {
            match gateway.status(&id).await {
                Err(LogError::Unavailable { .. }) => sleep(Duration::from_millis(20)).await,
                status => break status,
            }
        };
        assert_eq!(status, Ok(LogStatus::Unknown));
        assert!(gateway.may_lack_streams().await);
    }
    sleep(REPAIR_TIME / 2).await;
    assert!(reader.may_lack_streams().await && late.may_lack_streams().await);
    let _writer = producer.reopen(&id, &meta()).await.unwrap();
    assert!(matches!(
        reader.status(&id).await,
        Ok(LogStatus::Running { .. })
    ));
    while reader.may_lack_streams().await || late.may_lack_streams().await {
        assert!(started.elapsed() < REPAIR_TIME + Duration::from_secs(3));
        sleep(Duration::from_millis(100)).await;
    }
    assert!(started.elapsed() >= REPAIR_TIME - Duration::from_secs(1));
}
