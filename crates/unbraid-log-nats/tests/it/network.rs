//! Connections that are cut, and answers that are late.

use std::time::Duration;

use futures::StreamExt;
use tokio::time::{Instant, sleep, timeout};
use unbraid_log::{Appended, End, LogStore, Seq, StreamEnd};
use unbraid_log_nats::NatsLog;
use unbraid_testkit::servers::proxy::Proxy;

use crate::support::{meta, new_id, options, record, server};

fn url(proxy: &Proxy) -> String {
    format!("nats://127.0.0.1:{}", proxy.port())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_that_cuts_every_three_seconds_loses_and_repeats_nothing() {
    const EVENTS: u64 = 300;
    let Some(server) = server().await else {
        return;
    };
    let cut = Some(Duration::from_secs(3));
    let (near, far) = (
        Proxy::start(server.port(), cut).await.unwrap(),
        Proxy::start(server.port(), Some(Duration::from_millis(2100)))
            .await
            .unwrap(),
    );
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
    let proxy = Proxy::start(server.port(), None).await.unwrap();
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
