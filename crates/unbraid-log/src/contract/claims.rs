//! Idempotency keys, and commands to the producer.

use std::time::Duration;

use futures::{StreamExt, future::join_all};
use tokio::time::{sleep, timeout};
use unbraid_core::ChoiceIndex;

use super::{
    Engine,
    fixture::{meta, new_id, open},
};
use crate::{Claim, ClaimKey, Command, End, LogError, StreamEnd, StreamId};

fn new_key() -> ClaimKey {
    let key = format!("key {} é/*>.", new_id());
    ClaimKey::new("alice", "/v1/chat/completions", &key, [7; 32])
}

pub(super) async fn one_of_many_claims_is_acquired(engine: &dyn Engine) {
    let (one, other) = (engine.gateway().await, engine.gateway().await);
    let key = new_key();
    let ids: Vec<StreamId> = (0..20).map(|_| new_id()).collect();
    let claims = join_all(ids.iter().enumerate().map(|(turn, id)| {
        let log = if turn % 2 == 0 { &one } else { &other };
        log.claim(&key, id)
    }))
    .await;
    let acquired: Vec<&StreamId> = claims
        .iter()
        .zip(&ids)
        .filter_map(|(claim, id)| (*claim == Ok(Claim::Acquired)).then_some(id))
        .collect();
    let [holder] = acquired[..] else {
        panic!("{} claims were acquired", acquired.len());
    };
    let held = Claim::Held {
        id: holder.clone(),
        fingerprint: [7; 32],
    };
    let others = claims.iter().filter(|claim| **claim == Ok(held.clone()));
    assert_eq!(others.count(), 19);
    assert_eq!(
        one.claim(&key, holder).await,
        Ok(Claim::Acquired),
        "repeated"
    );
}

pub(super) async fn a_claim_that_is_repeated_is_kept_without_a_stream(engine: &dyn Engine) {
    let (log, other) = (engine.gateway().await, engine.gateway().await);
    let (key, id) = (new_key(), new_id());
    assert_eq!(log.claim(&key, &id).await, Ok(Claim::Acquired));
    let held = Claim::Held {
        id: id.clone(),
        fingerprint: key.fingerprint,
    };
    for _ in 0..9 {
        sleep(engine.lease() / 3).await;
        // Before the holder, who would get a claim that has ended again; and twice, because a log may free it after a call.
        for _ in 0..2 {
            assert_eq!(other.claim(&key, &new_id()).await, Ok(held.clone()));
        }
        assert_eq!(log.claim(&key, &id).await, Ok(Claim::Acquired));
    }
    // A stream that is opened does not need the repetitions.
    let meta = meta().with_claim(key.clone());
    let mut writer = log.open(&id, &meta).await.expect("a new id");
    for _ in 0..6 {
        assert_eq!(other.claim(&key, &new_id()).await, Ok(held.clone()));
        sleep(engine.lease() / 3).await;
        assert_eq!(writer.renew().await, Ok(()));
    }
    assert_eq!(other.claim(&key, &new_id()).await, Ok(held));
    assert_eq!(writer.seal(&StreamEnd::new(End::Finished)).await, Ok(()));
}

pub(super) async fn a_claim_is_kept_with_its_stream_and_freed_with_it(engine: &dyn Engine) {
    let (log, other) = (engine.gateway().await, engine.gateway().await);
    let (key, id, next) = (new_key(), new_id(), new_id());
    assert_eq!(log.claim(&key, &id).await, Ok(Claim::Acquired));
    let meta = meta().with_claim(key.clone());
    let mut writer = log.open(&id, &meta).await.expect("a new id");
    let held = Claim::Held {
        id: id.clone(),
        fingerprint: key.fingerprint,
    };
    assert_eq!(other.claim(&key, &next).await, Ok(held.clone()));
    assert_eq!(writer.seal(&StreamEnd::new(End::Finished)).await, Ok(()));
    assert_eq!(other.claim(&key, &next).await, Ok(held));
    assert_eq!(log.erase(&id).await, Ok(()));
    assert_eq!(other.claim(&key, &next).await, Ok(Claim::Acquired));
}

/// Its holder may claim once more although the stream is gone: a renewal that arrives late.
pub(super) async fn the_claim_of_an_expired_stream_is_free(engine: &dyn Engine) {
    let (log, other) = (engine.gateway().await, engine.gateway().await);
    let (key, id, next) = (new_key(), new_id(), new_id());
    assert_eq!(log.claim(&key, &id).await, Ok(Claim::Acquired));
    let meta = meta().with_claim(key.clone());
    let mut writer = log.open(&id, &meta).await.expect("a new id");
    assert_eq!(writer.seal(&StreamEnd::new(End::Finished)).await, Ok(()));
    assert_eq!(log.erase(&id).await, Ok(()));
    let _late = log.claim(&key, &id).await.expect("the engine runs");
    assert_eq!(other.claim(&key, &next).await, Ok(Claim::Acquired));
    let held = Claim::Held {
        id: next,
        fingerprint: key.fingerprint,
    };
    assert_eq!(log.claim(&key, &new_id()).await, Ok(held));
}

/// Its producer releases it, and goes on to renew and to seal.
pub(super) async fn the_claim_of_a_refused_stream_stays_free(engine: &dyn Engine) {
    let (log, other) = (engine.gateway().await, engine.gateway().await);
    let (key, id, next) = (new_key(), new_id(), new_id());
    assert_eq!(log.claim(&key, &id).await, Ok(Claim::Acquired));
    let meta = meta().with_claim(key.clone());
    let mut writer = log.open(&id, &meta).await.expect("a new id");
    assert_eq!(log.release(&key, &id).await, Ok(()));
    assert_eq!(writer.renew().await, Ok(()));
    assert_eq!(writer.seal(&StreamEnd::new(End::Refused)).await, Ok(()));
    assert_eq!(other.claim(&key, &next).await, Ok(Claim::Acquired));
    // A repetition of the seal takes it from nobody.
    let repeated = writer.seal(&StreamEnd::new(End::Refused)).await;
    assert!(matches!(repeated, Ok(()) | Err(LogError::Sealed)));
    let held = Claim::Held {
        id: next,
        fingerprint: key.fingerprint,
    };
    assert_eq!(log.claim(&key, &id).await, Ok(held));
}

pub(super) async fn only_the_holder_releases_a_claim(engine: &dyn Engine) {
    let log = engine.gateway().await;
    let (key, holder, other) = (new_key(), new_id(), new_id());
    assert_eq!(log.claim(&key, &holder).await, Ok(Claim::Acquired));
    assert_eq!(log.release(&key, &other).await, Ok(()));
    assert!(matches!(
        log.claim(&key, &other).await,
        Ok(Claim::Held { .. })
    ));
    assert_eq!(log.release(&key, &holder).await, Ok(()));
    assert_eq!(log.claim(&key, &other).await, Ok(Claim::Acquired));
    assert_eq!(
        log.release(&key, &holder).await,
        Ok(()),
        "it is not held any more"
    );
    assert!(matches!(
        log.claim(&key, &holder).await,
        Ok(Claim::Held { .. })
    ));
}

pub(super) async fn commands_reach_the_producer_in_order(engine: &dyn Engine) {
    let mut stream = open(engine).await;
    let other = engine.gateway().await;
    let sent = [
        Command::Cancel(Some(ChoiceIndex(1))),
        Command::Read,
        Command::Cancel(Some(ChoiceIndex(0))),
        Command::Cancel(None),
    ];
    // The first command is sent before the producer listens.
    assert_eq!(other.send_command(&stream.id, sent[0]).await, Ok(()));
    let mut commands = stream.log.commands();
    for command in &sent[1..] {
        assert_eq!(other.send_command(&stream.id, *command).await, Ok(()));
    }
    let mut received = Vec::new();
    while received.len() < sent.len() {
        let next = timeout(Duration::from_secs(10), commands.next()).await;
        let (id, command) = next
            .expect("a command is lost")
            .expect("the stream never ends");
        // Other streams of the same gateway share it.
        if id == stream.id {
            received.push(command);
        }
    }
    assert_eq!(received, sent);
    stream.seal(End::Cancelled).await;
    assert_eq!(
        other.send_command(&stream.id, sent[3]).await,
        Ok(()),
        "it is dropped"
    );
}

pub(super) async fn commands_of_one_stream_have_a_receiver_of_their_own(engine: &dyn Engine) {
    let (producer, other) = (engine.gateway().await, engine.gateway().await);
    let (mut streams, mut writers) = (Vec::new(), Vec::new());
    for choice in 0..3 {
        let id = new_id();
        let commands = producer.commands_of(&id);
        writers.push(producer.open(&id, &meta()).await.expect("a new id"));
        let cancel = Command::Cancel(Some(ChoiceIndex(choice)));
        streams.push((id, commands, [cancel, Command::Cancel(None)]));
    }
    for (id, _, sent) in &streams {
        for command in sent {
            assert_eq!(other.send_command(id, *command).await, Ok(()));
        }
    }
    // One after the other: no receiver depends on another one being polled.
    for (_, commands, sent) in streams.iter_mut().rev() {
        for expected in sent {
            let next = timeout(Duration::from_secs(10), commands.next()).await;
            assert_eq!(next.expect("a command is lost"), Some(*expected));
        }
    }
    for writer in &mut writers {
        let sealed = writer.seal(&StreamEnd::new(End::Cancelled)).await;
        assert_eq!(sealed, Ok(()));
    }
}
