use super::*;
use crate::gateway::{load::Load, load::Target, meter::Meter, upstream::Plan};

#[test]
fn stamps_are_found_at_every_cut() {
    let clock = Clock::start();
    let mut wire = Vec::new();
    for number in 0..3 {
        for choice in 0..2 {
            wire.extend_from_slice(b"data: {\"content\":\"");
            wire.extend_from_slice(meter::stamp(choice, number, clock).as_bytes());
            wire.extend_from_slice(b"\"}\n\n");
        }
    }
    wire.extend_from_slice(b"data: [DONE]\n\n");
    for cut in 0..=wire.len() {
        let (head, tail) = wire.split_at(cut);
        let mut meter = Meter::default();
        let mut stamps = Vec::new();
        meter.read(head, |stamp| stamps.push(stamp));
        meter.read(tail, |stamp| stamps.push(stamp));
        assert!(meter.is_done, "cut at {cut}");
        assert_eq!(
            (meter.deltas, meter.wrong, stamps.len()),
            (6, 0, 6),
            "cut at {cut}"
        );
        assert!(stamps.is_sorted());
    }
}

#[test]
fn a_delta_that_is_missing_or_repeated_counts() {
    let count = |text: &str| {
        let mut meter = Meter::default();
        meter.read(text.as_bytes(), |_| {});
        (meter.deltas, meter.wrong)
    };
    assert_eq!(count("@0.0.5; @0.1.6; @1.0.7;"), (3, 0));
    assert_eq!(count("@0.0.5; @0.2.6;"), (2, 1));
    assert_eq!(count("@0.0.5; @0.0.6;"), (2, 1));
    assert_eq!(count("mail@example.com; @0.0.5;"), (1, 1));
}

#[test]
fn the_load_without_anything_between_loses_nothing() {
    let upstream = Upstream::start().unwrap();
    let plan = Plan {
        choices: 4,
        deltas: 5,
        every: Duration::from_millis(1),
        stays_open: false,
    };
    upstream.set_plan(plan);
    let target = Target {
        address: upstream.address,
        headers: "",
    };
    let limit = Duration::from_secs(20);
    let load = Load::start(&target, plan, 10, Duration::ZERO, limit, upstream.clock);
    load.begin();
    let (tally, latencies) = load.finish().unwrap();
    assert_eq!((tally.deltas, tally.wrong, tally.incomplete), (200, 0, 0));
    assert!(!latencies.is_empty());
    assert_eq!(upstream.written().0, 200);
}

#[test]
fn the_usage_of_this_process_is_counted() {
    let pid = std::process::id();
    assert!(process::tree(pid).unwrap().contains(&pid));
    let usage = process::usage(&[pid]);
    assert!(
        usage.memory > 100_000 && usage.peak >= usage.memory / 2,
        "{usage:?}"
    );
}

/// A small run of `unbraid-bench gateway soak`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn generations_with_random_faults_end_and_lose_nothing() {
    let start = async |upstream| {
        let millis = Duration::from_millis;
        let gateway = unbraid_gateway::Gateway::builder(format!("http://{upstream}/v1"))
            .idle_timeout(millis(400))
            .first_byte_timeout(millis(600))
            .reader_stall(millis(1000))
            .ping(millis(50))
            .max_connection_age(Some(millis(500)))
            .max_stream_bytes(256 * 1024)
            .build()
            .unwrap();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = unbraid_gateway::Server::new(gateway);
        tokio::spawn(server.serve(listener, std::future::pending()));
        address
    };
    let tally = soak::with(start, 1..401).await.unwrap();
    assert_eq!(
        (tally.opened, tally.ended, tally.hung),
        (400, 400, 0),
        "{tally:?}"
    );
    assert!(tally.wrong.is_empty(), "{:?}", tally.wrong);
    for end in [
        "finished",
        "cancelled",
        "transport",
        "timed_out",
        "limit_exceeded",
        "refused",
    ] {
        assert!(tally.ends.contains_key(end), "{end}: {:?}", tally.ends);
    }
}
