//! Cancelled fan-outs, and cancelled choices of a fan-out.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::time::timeout;
use unbraid::StreamError;
use unbraid_testkit::script::{Probe, Script, Step, bytes, content};

use super::{DEADLINE, question};
use crate::server::{self, Server};

/// A server whose responses begin and stall, and the probe of each.
async fn stalling() -> (Server, Arc<Mutex<Vec<Probe>>>) {
    let probes = Arc::new(Mutex::new(Vec::new()));
    let shared = Arc::clone(&probes);
    let server = Server::start(move |ordinal| {
        let script = Script::new([bytes(content(0, &format!("{ordinal}"))), Step::Stall]);
        shared.lock().unwrap().push(script.probe());
        server::stream(script)
    })
    .await;
    (server, probes)
}

async fn until(event: &str, mut condition: impl FnMut() -> bool) {
    let wait = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(DEADLINE, wait)
        .await
        .unwrap_or_else(|_| panic!("did not happen: {event}"));
}

#[tokio::test]
async fn a_cancelled_choice_closes_only_its_own_connection() {
    let (server, probes) = stalling().await;
    let completions = server.client().fan_out(&question(), 3);
    let choice = completions.choice(1).await.unwrap();
    let own: usize = choice
        .content()
        .next()
        .await
        .unwrap()
        .unwrap()
        .parse()
        .unwrap();
    until("three requests", || probes.lock().unwrap().len() == 3).await;
    choice.cancel();
    until("its connection is closed", || {
        probes.lock().unwrap()[own].closed()
    })
    .await;
    let open = probes
        .lock()
        .unwrap()
        .iter()
        .filter(|probe| !probe.closed())
        .count();
    assert_eq!(open, 2);
    drop((completions, choice));
    until("all are closed", || {
        probes.lock().unwrap().iter().all(Probe::closed)
    })
    .await;
}

#[tokio::test]
async fn waiting_requests_are_not_sent_after_a_cancel() {
    let (server, probes) = stalling().await;
    let client = server.builder().max_requests(2).build().unwrap();
    let completions = client.fan_out(&question(), 8);
    until("two requests", || probes.lock().unwrap().len() == 2).await;
    completions.cancel();
    assert!(matches!(
        completions.closed().await,
        Err(StreamError::Cancelled)
    ));
    until("both are closed", || {
        probes.lock().unwrap().iter().all(Probe::closed)
    })
    .await;
    assert_eq!(server.requests().len(), 2);
}
