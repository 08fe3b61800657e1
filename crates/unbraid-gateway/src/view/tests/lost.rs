//! Streams whose gateway died: their logs lack the ends of their choices.

use std::{
    future::poll_fn,
    sync::{Arc, Mutex, mpsc},
    thread,
    time::Duration,
};

use tokio::time::timeout;
use unbraid_core::ChoiceIndex;
use unbraid_log::{End, Meta, Seq};

use super::script::{Script, choice, drain, frame};
use crate::{
    decoding::Decoding,
    view::{Opened, Start, Target, ViewReader},
};

const PATIENCE: Duration = Duration::from_secs(20);

/// A decoding whose threads have other work until the sender is dropped.
fn busy() -> (Decoding, mpsc::Sender<()>) {
    let decoding = Decoding::default();
    let (sender, receiver) = mpsc::channel::<()>();
    let receiver = Arc::new(Mutex::new(receiver));
    for _ in 0..thread::available_parallelism().unwrap().get() {
        let (decoding, receiver) = (decoding.clone(), Arc::clone(&receiver));
        tokio::spawn(async move {
            let wait = move || receiver.lock().unwrap().recv().is_err();
            decoding.run(wait).await
        });
    }
    (decoding, sender)
}

/// Choice 0 has a finish reason, and choice 1 has not.
fn lost(decoding: &Decoding) -> Script {
    let meta = Meta::new("/v1/chat/completions", 7).with_n(2);
    let mut script = Script::decoded_by(decoding, meta);
    script.text(1, "b");
    let finish = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
    script.chunk(&[0], finish);
    script.lose(End::ProducerLost);
    script
}

async fn rest(reader: &mut ViewReader) -> String {
    let mut text = String::new();
    while let Some(frame) = poll_fn(|cx| reader.poll_frame(cx)).await {
        text.push_str(&String::from_utf8_lossy(&frame.unwrap()));
    }
    text
}

/// The decoding of long streams took the threads that pass on the deltas of all others.
#[tokio::test]
async fn the_end_of_a_lost_stream_waits_for_no_decoding_and_the_rest_is_decoded_elsewhere() {
    let (decoding, gate) = busy();
    tokio::task::yield_now().await;
    let script = lost(&decoding);
    let (text, has_ended) = script.read(Target::Combined, Start::Beginning);
    assert!(has_ended && text.contains("producer_lost"), "{text}");
    let mut readers = [0, 1].map(|index| script.reader(choice(index), Start::Beginning));
    for reader in &mut readers {
        let (text, has_ended) = drain(reader);
        assert!(!has_ended && text.matches("data: ").count() == 1, "{text}");
    }
    let status = script.view.status(2048);
    let ends: Vec<_> = status.choices.iter().map(|choice| choice.end).collect();
    assert_eq!((status.end, ends), (None, vec![None, None]));
    assert_eq!(script.view.choice_end(ChoiceIndex(0)), Ok(None));
    // The number of the last event is the same, whatever the event is.
    for index in 0..2 {
        let opened = script.open(choice(index), Start::After(Seq(3)));
        assert!(matches!(opened, Opened::Complete));
    }
    drop(gate);
    let mut ended = Vec::new();
    for reader in &mut readers {
        ended.push(timeout(PATIENCE, rest(reader)).await.unwrap());
    }
    assert_eq!(ended[0], "id: 3\ndata: [DONE]\n\n");
    assert!(ended[1].contains(r#""code":"producer_lost""#), "{ended:?}");
    script.view.find_ends().await;
    let choices = script.view.status(2048).choices;
    let ends: Vec<_> = choices.iter().map(|choice| choice.end).collect();
    assert_eq!(ends, [Some(End::Finished), Some(End::ProducerLost)]);
}

/// A client that leaves while it waits for the last event leaves the work to the next one.
#[tokio::test]
async fn a_reader_that_leaves_does_not_keep_others_from_their_last_event() {
    let (decoding, gate) = busy();
    tokio::task::yield_now().await;
    let script = lost(&decoding);
    let mut first = script.reader(choice(0), Start::Beginning);
    assert!(!drain(&mut first).1);
    drop(first);
    drop(gate);
    let found = timeout(PATIENCE, script.view.find_ends()).await;
    assert!(found.is_ok());
    let mut second = script.reader(choice(0), Start::After(Seq(2)));
    assert!(frame(&mut second).is_ready());
    assert!(drain(&mut second).1);
}

/// The client of the first reader accepts nothing, so that nobody polls it.
#[tokio::test]
async fn a_reader_that_is_not_polled_keeps_nobody_waiting() {
    let (decoding, gate) = busy();
    tokio::task::yield_now().await;
    let script = lost(&decoding);
    let mut first = script.reader(choice(0), Start::Beginning);
    assert!(!drain(&mut first).1);
    // It has its turn before the next one asks.
    drop(gate);
    assert!(timeout(PATIENCE, script.view.find_ends()).await.is_ok());
    assert!(timeout(PATIENCE, decoding.run(|| ())).await.is_ok());
    let (text, has_ended) = drain(&mut first);
    assert!(has_ended && text.contains("[DONE]"), "{text}");
}
