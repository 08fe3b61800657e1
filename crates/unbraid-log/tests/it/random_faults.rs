//! Random faults: whatever happens to the log, each reader gets what the producer produced, once and in order.

use std::{sync::Arc, time::Duration};

use proptest::prelude::*;
use tokio::time::sleep;
use unbraid_log::{
    End, Event, Follower, Journal, LogStore, Meta, Producer, ProducerOptions, RecordBuilder, Seq,
    StreamEnd, StreamId,
    internal::scripted::{Engine, Fault, payloads},
};

const LEASE: Duration = Duration::from_secs(6);

/// What happens next.
#[derive(Debug, Clone)]
enum Step {
    Push(u8),
    Wait(u64),
    Fault(Option<Fault>),
    Script(Vec<Option<Fault>>),
    /// Another gateway's view of the log fails.
    Partition(Option<Fault>),
    Lose(usize),
    Empty,
    /// A reader of another gateway joins.
    Follow,
}

fn fault() -> impl Strategy<Value = Option<Fault>> {
    prop_oneof![
        3 => Just(None),
        1 => Just(Some(Fault::Down)),
        1 => Just(Some(Fault::Hang)),
        1 => Just(Some(Fault::LostAnswer)),
        1 => (0..8000_u64).prop_map(|ms| Some(Fault::Late(Duration::from_millis(ms)))),
        1 => (0..2500_u64).prop_map(|ms| Some(Fault::Slow(Duration::from_millis(ms)))),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (1..5_u8).prop_map(Step::Push),
        4 => (0..1500_u64).prop_map(Step::Wait),
        2 => fault().prop_map(Step::Fault),
        2 => prop::collection::vec(fault(), 1..5).prop_map(Step::Script),
        1 => fault().prop_map(Step::Partition),
        1 => (1..4_usize).prop_map(Step::Lose),
        1 => Just(Step::Empty),
        1 => Just(Step::Follow),
    ]
}

/// What a reader has got is a prefix of what was produced.
fn check_prefix(journal: &Journal, produced: &[String]) {
    let got = payloads(&journal.records(Seq::START));
    assert!(got.len() <= produced.len());
    assert_eq!(got, produced[..got.len()]);
}

/// The stream lives as long as its lease is renewed: so no fault lasts longer than the lease less the time of one renewal.
async fn run(steps: Vec<Step>) {
    let engine = Engine::new(LEASE);
    let (log, other) = (engine.gateway(), engine.gateway());
    let id = StreamId::random().unwrap();
    let options = ProducerOptions::default().with_lease(LEASE);
    let store = Arc::clone(&log) as Arc<dyn LogStore>;
    let meta = Meta::new("/v1/chat/completions", 1);
    let producer = Producer::open(store, &id, &meta, options).await.unwrap();
    let follow = || Follower::start(Arc::clone(&other) as Arc<dyn LogStore>, id.clone(), LEASE);
    let mut followers = vec![follow()];
    let mut builder = RecordBuilder::new(Seq(1));
    let mut produced = Vec::new();
    let has_losses = steps
        .iter()
        .any(|step| matches!(step, Step::Lose(_) | Step::Empty));
    for step in steps {
        match step {
            Step::Push(count) => {
                for _ in 0..count {
                    let text = produced.len().to_string();
                    builder.push(&Event::chunk(&[0.into()], text.as_bytes()));
                    produced.push(text);
                }
                producer.append(builder.take().unwrap());
            }
            Step::Wait(milliseconds) => sleep(Duration::from_millis(milliseconds)).await,
            Step::Fault(fault) => log.set(fault),
            Step::Script(faults) => log.script(faults),
            Step::Partition(fault) => other.set(fault),
            Step::Lose(records) => engine.lose(records),
            Step::Empty => engine.empty(),
            Step::Follow => followers.push(follow()),
        }
        check_prefix(producer.journal(), &produced);
        if !producer.is_degraded() && !has_losses && engine.end(&id).is_none() {
            // Delivery after the acknowledgement. A log that is so slow that it declares its producer lost keeps less.
            let kept = engine.payloads(&id).len();
            assert!(payloads(&producer.journal().records(Seq::START)).len() <= kept);
        }
        for follower in &followers {
            check_prefix(follower.journal(), &produced);
        }
    }
    log.set(None);
    other.set(None);
    producer.finish(StreamEnd::new(End::Finished));
    producer.sealed().await;
    // Late requests must change nothing.
    sleep(Duration::from_secs(10)).await;
    followers.push(follow());
    sleep(LEASE * 10).await;
    let Some(end) = engine.end(&id) else {
        // It was declared lost, and the log has forgotten that: then its producer was fenced before.
        assert!(has_losses && producer.failure().is_some());
        return;
    };
    let kept = engine.payloads(&id);
    let was_lost = end == End::ProducerLost;
    if !was_lost {
        assert_eq!(kept, produced, "the producer lives, so nothing is lost");
        assert_eq!(end, End::Finished);
    }
    for follower in &followers {
        let journal = follower.journal();
        check_prefix(journal, &produced);
        match journal.end().expect("no reader hangs") {
            Ok(ended) => {
                // A log that has forgotten a seal may get another one.
                assert!(has_losses || ended.end == end, "one end");
                let got = payloads(&journal.records(Seq::START)).len();
                let ended_early = has_losses && ended.end == End::ProducerLost;
                assert!(ended_early || got >= kept.len());
            }
            // A log that had forgotten the stream for a lease, or was not available for longer.
            Err(error) => assert!(has_losses || error.is_temporary(), "{error}"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn no_reader_gets_a_gap_a_repetition_or_two_ends(steps in prop::collection::vec(step(), 1..60)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(run(steps));
    }
}
