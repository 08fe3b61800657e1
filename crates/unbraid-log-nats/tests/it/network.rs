//! Connections that are cut, and answers that are late.

use std::{sync::Arc, time::Duration};

use futures::StreamExt;
use tokio::time::{Instant, sleep, timeout};
use unbraid_log::{Appended, Command, End, Follower, LogStatus, LogStore, Seq, StreamEnd};
use unbraid_log_nats::NatsLog;
use unbraid_testkit::servers::Proxy;

use crate::support::{LEASE, connect, meta, new_id, options, record, server};

async fn proxy(port: u16) -> Proxy {
    Proxy::start(format!("127.0.0.1:{port}")).await
}

fn url(proxy: &Proxy) -> String {
    format!("nats://{}", proxy.address())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_that_cuts_every_three_seconds_loses_and_repeats_nothing() {
    const EVENTS: u64 = 300;
    let Some(server) = server().await else {
        return;
    };
    let near = proxy(server.port()).await;
    near.cut_after(Some(Duration::from_secs(3)));
    let far = proxy(server.port()).await;
    far.cut_after(Some(Duration::from_millis(2100)));
    let log = NatsLog::connect(&url(&near), options()).await.unwrap();
    let other = NatsLog::connect(&url(&far), options()).await.unwrap();
    let id = new_id();
    let mut writer = log.open(&id, &meta()).await.unwrap();
    let reader = tokio::spawn({
        let id = id.clone();
        async move {
            let mut seq = 0;
            loop {
                let mut records = other.read(&id, Seq(seq));
                loop {
                    match records.next().await {
                        Some(Ok(record)) => {
                            assert_eq!(record.first(), Seq(seq + 1));
                            seq = record.last().0;
                        }
                        Some(Err(error)) => {
                            assert!(error.is_temporary(), "{error}");
                            break;
                        }
                        None => return seq,
                    }
                }
                sleep(Duration::from_millis(50)).await;
            }
        }
    });
    for seq in 1..=EVENTS {
        while let Err(error) = writer.append(&record(seq, seq)).await {
            assert!(error.is_temporary(), "{error}");
            sleep(Duration::from_millis(50)).await;
        }
        sleep(Duration::from_millis(30)).await;
    }
    while let Err(error) = writer.seal(&StreamEnd::new(End::Finished)).await {
        assert!(error.is_temporary(), "{error}");
    }
    let read = timeout(Duration::from_secs(20), reader).await;
    assert_eq!(read.expect("the reader hangs").unwrap(), EVENTS);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_after_five_seconds_costs_a_second_and_changes_nothing() {
    let Some(server) = server().await else {
        return;
    };
    let proxy = proxy(server.port()).await;
    let log = NatsLog::connect(&url(&proxy), options()).await.unwrap();
    let (id, second) = (new_id(), new_id());
    let mut writer = log.open(&id, &meta()).await.unwrap();
    assert_eq!(writer.append(&record(1, 1)).await, Ok(Appended::New));
    proxy.delay(Duration::from_secs(5));
    let started = Instant::now();
    let refused = writer.append(&record(2, 2)).await.unwrap_err();
    assert!(refused.is_temporary(), "{refused}");
    let opened = log.open(&second, &meta()).await.err().unwrap();
    assert!(opened.is_temporary(), "{opened}");
    assert!(
        started.elapsed() < Duration::from_millis(2800),
        "{:?}",
        started.elapsed()
    );
    proxy.delay(Duration::ZERO);
    // The server has carried out both. Repeated, they have their effect once.
    let repeated = loop {
        match writer.append(&record(2, 2)).await {
            Err(error) if error.is_temporary() => sleep(Duration::from_millis(50)).await,
            result => break result,
        }
    };
    assert_eq!(repeated, Ok(Appended::Duplicate));
    let mut again = loop {
        match log.open(&second, &meta()).await {
            Err(error) if error.is_temporary() => sleep(Duration::from_millis(50)).await,
            opened => break opened.expect("the attempt that had no answer is its own"),
        }
    };
    assert_eq!(again.append(&record(1, 1)).await, Ok(Appended::New));
    assert_eq!(writer.append(&record(3, 3)).await, Ok(Appended::New));
    assert_eq!(writer.seal(&StreamEnd::new(End::Finished)).await, Ok(()));
    assert_eq!(log.read(&id, Seq::START).count().await, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_are_cut_all_the_time_keep_no_lost_producer_alive() {
    let Some(server) = server().await else {
        return;
    };
    let far = proxy(server.port()).await;
    let log = connect(&server).await;
    let other = NatsLog::connect(&url(&far), options()).await.unwrap();
    let id = new_id();
    let mut writer = log.open(&id, &meta()).await.unwrap();
    assert_eq!(writer.append(&record(1, 1)).await, Ok(Appended::New));
    far.cut_after(Some(Duration::from_millis(700)));
    let silent_since = Instant::now();
    loop {
        match other.seal_lost(&id).await {
            Ok(LogStatus::Ended { end, .. }) => break assert_eq!(end.end, End::ProducerLost),
            Ok(_) => {}
            Err(error) => assert!(error.is_temporary(), "{error}"),
        }
        let elapsed = silent_since.elapsed();
        assert!(elapsed < LEASE + Duration::from_secs(3), "{elapsed:?}");
        sleep(Duration::from_millis(50)).await;
    }
    assert!(silent_since.elapsed() > LEASE - Duration::from_millis(200));
}

/// Each gateway counts a lease by its own clock, so it has to see the lease soon after it has a connection again.
#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_was_partitioned_ends_the_readers_of_a_lost_producer_one_lease_later() {
    let Some(server) = server().await else {
        return;
    };
    let log = connect(&server).await;
    // The times are such that pauses of seconds between two attempts would be noticed.
    for (is_silent, outage) in [(false, 5_000), (false, 6_500), (true, 7_000)] {
        let far = proxy(server.port()).await;
        let other = NatsLog::connect(&url(&far), options()).await.unwrap();
        let id = new_id();
        let mut writer = log.open(&id, &meta()).await.unwrap();
        assert_eq!(writer.append(&record(1, 1)).await, Ok(Appended::New));
        let follower = Follower::start(Arc::new(other), id, LEASE);
        let mut records = follower.journal().reader(Seq::START);
        assert!(records.next().await.is_some());
        let partition = |is_on| match is_silent {
            true => far.hold(is_on),
            false => far.refuse(is_on),
        };
        partition(true);
        sleep(Duration::from_millis(outage)).await;
        partition(false);
        let healed = Instant::now();
        while follower.journal().end().is_none() {
            let elapsed = healed.elapsed();
            let limit = LEASE + Duration::from_millis(1800);
            assert!(elapsed < limit, "{elapsed:?} after {outage} ms");
            sleep(Duration::from_millis(10)).await;
        }
        let end = follower.journal().end().unwrap().unwrap();
        assert_eq!(end.end, End::ProducerLost);
        println!("{:?} after {outage} ms", healed.elapsed());
    }
}

/// A place in the middle of a log is found by halves: many requests, of which each has the time of one.
#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_in_a_long_log_is_found_although_each_answer_takes_a_while() {
    let Some(server) = server().await else {
        return;
    };
    let far = proxy(server.port()).await;
    let log = connect(&server).await;
    let other = NatsLog::connect(&url(&far), options()).await.unwrap();
    let id = new_id();
    let mut writer = log.open(&id, &meta()).await.unwrap();
    for seq in 1..=600 {
        assert_eq!(writer.append(&record(seq, seq)).await, Ok(Appended::New));
    }
    far.delay(Duration::from_millis(200));
    let mut records = other.read(&id, Seq(200));
    let next = timeout(Duration::from_secs(20), records.next()).await;
    let next = next.expect("it hangs").expect("it is not sealed");
    assert_eq!(next.unwrap().first(), Seq(201));
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_are_cut_do_not_make_a_stream_that_nobody_writes_wait() {
    let Some(server) = server().await else {
        return;
    };
    let near = proxy(server.port()).await;
    let log = NatsLog::connect(&url(&near), options()).await.unwrap();
    let unknown = new_id();
    for _ in 0..3 {
        assert_eq!(log.status(&unknown).await, Ok(LogStatus::Unknown));
        assert!(!log.may_lack_streams().await);
        near.cut();
        let cut = Instant::now();
        while !log.may_lack_streams().await {
            assert!(cut.elapsed() < Duration::from_secs(1), "it was not noticed");
            sleep(Duration::from_millis(5)).await;
        }
        while log.may_lack_streams().await {
            let _answer = log.status(&unknown).await;
            sleep(Duration::from_millis(100)).await;
        }
        // Less than the interval of the cuts that a gateway has to bear.
        assert!(cut.elapsed() < Duration::from_millis(2_500));
    }
}

/// A gateway reports its readers by commands. One that is late keeps the generation, and one that fails does not.
#[tokio::test(flavor = "multi_thread")]
async fn a_command_is_stored_although_each_answer_takes_more_than_half_a_second() {
    let Some(server) = server().await else {
        return;
    };
    let far = proxy(server.port()).await;
    let log = connect(&server).await;
    let other = NatsLog::connect(&url(&far), options()).await.unwrap();
    let mut commands = log.commands();
    let id = new_id();
    let _writer = log.open(&id, &meta()).await.unwrap();
    assert!(other.status(&id).await.is_ok());
    far.delay(Duration::from_millis(550));
    for command in [Command::Read, Command::Cancel(None), Command::Read] {
        assert_eq!(other.send_command(&id, command).await, Ok(()));
        let received = timeout(Duration::from_secs(10), commands.next()).await;
        assert_eq!(received.unwrap(), Some((id.clone(), command)));
    }
}
