//! A gateway that is killed or suspended between the claim of an idempotency key and the opening of its stream.

use std::{
    io::Write,
    net::{SocketAddr, TcpListener, TcpStream},
    sync::mpsc::{Receiver, channel},
    thread,
    time::Duration,
};

use tokio::time::Instant;
use unbraid_testkit::servers::RedisServer;

use super::{Serve, TIMEOUT, read_request, send};

const LEASE: Duration = Duration::from_secs(2);

/// Answers each request with its ordinal. The first one gets its head when the sender sends, or is dropped. The receiver gets the
/// ordinals.
fn upstream(gate: Receiver<()>) -> (String, Receiver<usize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let (sender, requests) = channel();
    thread::spawn(move || {
        let mut gate = Some(gate);
        for (ordinal, socket) in listener.incoming().enumerate() {
            let (socket, gate) = (socket.unwrap(), gate.take());
            read_request(&socket);
            let _test_is_over = sender.send(ordinal);
            thread::spawn(move || {
                if let Some(gate) = gate {
                    let _opened = gate.recv_timeout(TIMEOUT);
                }
                answer(socket, ordinal);
            });
        }
    });
    (url, requests)
}

fn answer(mut socket: TcpStream, ordinal: usize) {
    let text = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n\
         data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"answer {ordinal}\"}}}}]}}\n\n\
         data: {{\"choices\":[{{\"index\":0,\"delta\":{{}},\"finish_reason\":\"stop\"}}]}}\n\ndata: [DONE]\n\n"
    );
    // The gateway may have closed it.
    let _result = socket.write_all(text.as_bytes());
}

fn post(address: SocketAddr) -> thread::JoinHandle<String> {
    let body = r#"{"model":"m","stream":true}"#;
    let key = "idempotency-key: order-1\r\n";
    thread::spawn(move || send(address, "POST", "/v1/chat/completions", key, body))
}

/// Two gateways with one log, of which the first has sent a request that waits.
fn check(signal: &str, then: impl FnOnce(&Serve, thread::JoinHandle<String>, String)) {
    let Some(redis) = RedisServer::new() else {
        return;
    };
    let (open, gate) = channel();
    let (url, requests) = upstream(gate);
    let (log, lease) = (redis.url(), format!("{}s", LEASE.as_secs()));
    let options = ["--upstream", &url, "--log", &log, "--lease", &lease];
    let (a, b) = (Serve::start(&options, &[]), Serve::start(&options, &[]));
    let first = post(a.address);
    assert_eq!(requests.recv_timeout(TIMEOUT), Ok(0));
    a.signal(signal);
    let started = Instant::now();
    let second = post(b.address).join().unwrap();
    assert!(
        second.contains("answer 1") && second.contains("[DONE]"),
        "{second}"
    );
    assert!(started.elapsed() >= LEASE / 2, "{:?}", started.elapsed());
    // The head of the first answer.
    open.send(()).unwrap();
    then(&a, first, second);
    assert_eq!(requests.try_iter().collect::<Vec<_>>(), [1]);
}

#[test]
fn the_key_of_a_gateway_that_is_killed_is_taken_over_after_its_lease() {
    check("-KILL", |_, first, _| {
        // Its client gets nothing that looks like an answer.
        let first = first.join();
        assert!(first.is_err() || first.is_ok_and(|answer| answer.is_empty()));
    });
}

#[test]
fn a_gateway_that_was_suspended_past_its_lease_starts_no_generation() {
    let id = |answer: &str| {
        let id = answer.split_once("x-stream-id: ").unwrap().1;
        id.split_once("\r\n").unwrap().0.to_owned()
    };
    check("-STOP", |gateway, first, second| {
        gateway.signal("-CONT");
        let first = first.join().unwrap();
        assert!(
            first.contains("answer 1") && first.contains("idempotent-replayed"),
            "{first}"
        );
        assert!(!first.contains("answer 0"), "{first}");
        assert_eq!(id(&first), id(&second));
    });
}
