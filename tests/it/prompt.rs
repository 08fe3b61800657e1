//! Every stream of a choice delivers a delta as soon as it is received, regardless of other consumers of the choice. Each
//! waiter is woken for its own deltas, and a read by one consumer takes nothing from another.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    future::Future,
    sync::{Arc, Mutex},
};

use futures::{future::join, stream};
use tokio::sync::mpsc;
use unbraid::{CallIndex, Choice, Completions, Demux, Event};
use unbraid_testkit::{cut::Rng, fixture::Fixture};

use crate::support::options;

/// A choice, the name of one of its texts, and a call or a number.
type TextKey = (u32, &'static str, CallIndex);

/// All texts received so far.
type Texts = BTreeMap<TextKey, String>;

#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Texts>>);

impl Seen {
    fn add(&self, key: TextKey, text: &str) {
        let mut texts = self.0.lock().unwrap();
        texts.entry(key).or_default().push_str(text);
    }

    fn texts(&self) -> Texts {
        self.0.lock().unwrap().clone()
    }
}

/// Records the events of `Demux`, twice where two tasks read them.
fn record_events(demux: &mut Demux, seen: &Seen) {
    while let Some(record) = demux.next_event() {
        let choice = record.choice.map_or(0, |choice| choice.0);
        match record.event {
            Event::Content(text) => {
                seen.add((choice, "content", CallIndex(0)), text);
                seen.add((choice, "both", CallIndex(0)), text);
                seen.add((choice, "events", CallIndex(0)), text);
            }
            Event::Reasoning(text) => seen.add((choice, "reasoning", CallIndex(0)), text),
            Event::Refusal(text) => seen.add((choice, "refusal", CallIndex(0)), text),
            Event::ToolCallStart {
                call_index, name, ..
            } => seen.add((choice, "call", call_index), name),
            Event::ToolCallArguments { call_index, text } => {
                seen.add((choice, "arguments", call_index), text);
                seen.add((choice, "events", CallIndex(2)), text);
                if call_index == CallIndex(0) {
                    seen.add((choice, "both", CallIndex(1)), text);
                }
            }
            Event::Finish(_) => seen.add((choice, "events", CallIndex(1)), "finish"),
            Event::End(_) => seen.add((choice, "ended", CallIndex(0)), "ended"),
            _ => {}
        }
    }
}

fn spawn(task: impl Future<Output = ()> + Send + 'static) {
    drop(tokio::spawn(task));
}

/// Spawns a task for each text of a choice, one for two texts together, one for all events, and one for the end.
fn spawn_consumers(choice: &Choice, seen: &Seen) {
    let index = choice.index().0;
    macro_rules! text {
        ($name:ident, $key:expr) => {
            let (mut text, seen, key) = (choice.$name(), seen.clone(), $key);
            spawn(async move {
                while let Some(Ok(delta)) = text.next().await {
                    seen.add(key, &delta);
                }
            });
        };
    }
    text!(content, (index, "content", CallIndex(0)));
    text!(reasoning, (index, "reasoning", CallIndex(0)));
    text!(refusal, (index, "refusal", CallIndex(0)));
    let (mut calls, call_texts) = (choice.tool_calls(), seen.clone());
    spawn(async move {
        while let Some(Ok(call)) = calls.next().await {
            call_texts.add((index, "call", call.call_index()), &call.name());
            let (mut arguments, seen) = (call.arguments(), call_texts.clone());
            spawn(async move {
                while let Some(Ok(delta)) = arguments.next().await {
                    seen.add((index, "arguments", call.call_index()), &delta);
                }
            });
        }
    });
    spawn(both(choice.clone(), seen.clone()));
    let (mut events, event_texts) = (choice.events(), seen.clone());
    spawn(async move {
        while let Some(Ok(record)) = events.next().await {
            match record.event {
                Event::Content(text) => event_texts.add((index, "events", CallIndex(0)), &text),
                Event::Finish(_) => event_texts.add((index, "events", CallIndex(1)), "finish"),
                Event::ToolCallArguments { text, .. } => {
                    event_texts.add((index, "events", CallIndex(2)), &text)
                }
                _ => {}
            }
        }
    });
    let (choice, seen) = (choice.clone(), seen.clone());
    spawn(async move {
        choice.outcome().await;
        seen.add((index, "ended", CallIndex(0)), "ended");
    });
}

/// Reads the content and the arguments of the first call in one task.
async fn both(choice: Choice, seen: Seen) {
    let index = choice.index().0;
    let (mut content, mut calls) = (choice.content(), choice.tool_calls());
    let texts = async {
        while let Some(Ok(delta)) = content.next().await {
            seen.add((index, "both", CallIndex(0)), &delta);
        }
    };
    let arguments = async {
        while let Some(Ok(call)) = calls.next().await {
            if call.call_index() != CallIndex(0) {
                continue;
            }
            let mut arguments = call.arguments();
            while let Some(Ok(delta)) = arguments.next().await {
                seen.add((index, "both", CallIndex(1)), &delta);
            }
        }
    };
    join(texts, arguments).await;
}

/// Delivers a stream read by read. After each read, the tasks must have received what `Demux` has emitted.
async fn check(fixture: &Fixture, reads: &[&[u8]], how: &str) {
    let expected = Seen::default();
    let mut demux = Demux::new(options(&fixture.options));
    let (reader, mut source) = mpsc::unbounded_channel::<Result<Vec<u8>, Infallible>>();
    let source = stream::poll_fn(move |cx| source.poll_recv(cx));
    let builder = Completions::builder()
        .config(options(&fixture.options))
        .implicit_timers(false);
    let completions = builder.from_byte_stream(source);
    let (mut choices, seen) = (completions.choices(), Seen::default());
    let choice_texts = seen.clone();
    spawn(async move {
        while let Some(Ok(choice)) = choices.next().await {
            spawn_consumers(&choice, &choice_texts);
        }
    });
    for (index, read) in reads.iter().enumerate() {
        demux.feed(read);
        record_events(&mut demux, &expected);
        let _closed = reader.send(Ok(read.to_vec()));
        catch_up(
            &expected,
            &seen,
            &format!("{}, {how}, read {index}", fixture.name),
        )
        .await;
    }
    demux.finish();
    record_events(&mut demux, &expected);
    drop(reader);
    catch_up(
        &expected,
        &seen,
        &format!("{}, {how}, at the end", fixture.name),
    )
    .await;
}

/// Yields until both are equal: the tasks need no other event to continue.
async fn catch_up(expected: &Seen, seen: &Seen, how: &str) {
    for _ in 0..200 {
        if expected.texts() == seen.texts() {
            return;
        }
        tokio::task::yield_now().await;
    }
    assert_eq!(seen.texts(), expected.texts(), "{how}");
}

fn events(bytes: &[u8]) -> Vec<&[u8]> {
    let mut events = Vec::new();
    let (mut start, mut end) = (0, 0);
    while end < bytes.len() {
        let blank = bytes[end..].starts_with(b"\n\n");
        end += if blank { 2 } else { 1 };
        if blank {
            events.push(&bytes[start..end]);
            start = end;
        }
    }
    events.push(&bytes[start..]);
    events
}

/// Removes, duplicates and swaps some of the events.
fn corrupt(events: &mut Vec<&[u8]>, rng: &mut Rng) {
    for _ in 0..=rng.below(4) {
        if events.is_empty() {
            return;
        }
        let (one, two) = (rng.below(events.len()), rng.below(events.len()));
        match rng.below(3) {
            0 => drop(events.remove(one)),
            1 => events.insert(two, events[one]),
            _ => events.swap(one, two),
        }
    }
}

#[test]
fn waiters_receive_each_read_before_the_next() {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.unwrap();
    for fixture in Fixture::all() {
        if fixture.bytes.len() > 64 * 1024 {
            continue; // hundreds of similar events
        }
        let events = events(&fixture.bytes);
        runtime.block_on(check(&fixture, &events, "by event"));
        for size in [2, 3] {
            let reads: Vec<Vec<u8>> = events.chunks(size).map(<[_]>::concat).collect();
            let reads: Vec<&[u8]> = reads.iter().map(Vec::as_slice).collect();
            runtime.block_on(check(&fixture, &reads, &format!("{size} events a read")));
        }
        for seed in 0..4 {
            let mut corrupted = events.clone();
            corrupt(&mut corrupted, &mut Rng::new(seed));
            runtime.block_on(check(&fixture, &corrupted, &format!("corrupted {seed}")));
        }
    }
}
