use super::{
    peer::{Clients, Peer},
    server::{Script, Server},
    *,
};
use crate::{
    body::{BRAIDED, body, numbered},
    stamps::Timestamps,
    table::RUNTIMES,
};

#[test]
fn every_peer_reads_what_was_sent() {
    let body = body(400, BRAIDED);
    for delivery in throughput::DELIVERIES {
        let server = Server::start(throughput::script(&body, delivery)).unwrap();
        for name in RUNTIMES {
            let clients = Clients::new(server.address).unwrap();
            throughput::compare(&runtime(name).unwrap(), &clients, &body).unwrap();
        }
    }
}

#[test]
fn every_update_is_timed() {
    let events = numbered(42, BRAIDED).into();
    let runtime = runtime("current_thread").unwrap();
    for peer in Peer::READERS {
        let times = latency::round(&runtime, peer, &events, 2).unwrap();
        assert_eq!(times.len(), 40);
    }
}

#[test]
fn a_peer_that_reads_nothing_is_an_error() {
    let timestamps = Timestamps::new(1);
    let server = Server::start(Script::Paced(Vec::new().into(), timestamps.clone())).unwrap();
    let clients = Clients::new(server.address).unwrap();
    let runtime = runtime("current_thread").unwrap();
    let answer =
        runtime.block_on(runtime.spawn(clients.run(Peer::AsyncOpenai, timestamps.clone())));
    assert_eq!(
        answer.unwrap().unwrap(),
        Some(crate::body::Answer::default())
    );
    assert!(timestamps.times(0).is_err());
}
