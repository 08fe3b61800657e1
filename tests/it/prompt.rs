//! Every stream of a choice has what has come as soon as it has come, whoever else looks at the choice: who waits is woken
//! for what it waits for, and nobody's look takes another's news.

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

/// Which text, of which choice.
type Lane = (u32, &'static str, CallIndex);

/// All texts so far.
type Texts = BTreeMap<Lane, String>;

#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Texts>>);

impl Seen {
    fn add(&self, lane: Lane, text: &str) {
        let mut texts = self.0.lock().unwrap();
        texts.entry(lane).or_default().push_str(text);
    }

    fn texts(&self) -> Texts {
        self.0.lock().unwrap().clone()
    }
}

/// What `Demux` has told so far, twice where two tasks look.
fn tell(demux: &mut Demux, seen: &Seen) {
    while let Some(stamped) = demux.next_event() {
        let choice = stamped.choice.map_or(0, |choice| choice.0);
        match stamped.event {
            Event::Content(text) => {
                seen.add((choice, "content", CallIndex(0)), text);
                seen.add((choice, "both", CallIndex(0)), text);
                seen.add((choice, "events", CallIndex(0)), text);
            }
            Event::Reasoning(text) => seen.add((choice, "reasoning", CallIndex(0)), text),
            Event::Refusal(text) => seen.add((choice, "refusal", CallIndex(0)), text),
            Event::ToolCallStart {
                call_index: call,
                name,
                ..
            } => seen.add((choice, "call", call), name),
            Event::ToolCallArguments {
                call_index: call,
                text,
            } => {
                seen.add((choice, "arguments", call), text);
                seen.add((choice, "events", CallIndex(2)), text);
                if call == CallIndex(0) {
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

/// A task for each text of a choice, one for two of them together, one for all events, and one for the end.
fn look(choice: &Choice, seen: &Seen) {
    let index = choice.index().0;
    macro_rules! text {
        ($name:ident, $lane:expr) => {
            let (mut text, seen, lane) = (choice.$name(), seen.clone(), $lane);
            spawn(async move {
                while let Some(Ok(piece)) = text.next().await {
                    seen.add(lane, &piece);
                }
            });
        };
    }
    text!(content, (index, "content", CallIndex(0)));
    text!(reasoning, (index, "reasoning", CallIndex(0)));
    text!(refusal, (index, "refusal", CallIndex(0)));
    let (mut calls, of_calls) = (choice.tool_calls(), seen.clone());
    spawn(async move {
        while let Some(Ok(call)) = calls.next().await {
            of_calls.add((index, "call", call.call_index()), &call.name());
            let (mut arguments, seen) = (call.arguments(), of_calls.clone());
            spawn(async move {
                while let Some(Ok(piece)) = arguments.next().await {
                    seen.add((index, "arguments", call.call_index()), &piece);
                }
            });
        }
    });
    spawn(both(choice.clone(), seen.clone()));
    let (mut events, of_events) = (choice.events(), seen.clone());
    spawn(async move {
        while let Some(Ok(stamped)) = events.next().await {
            match stamped.event {
                Event::Content(text) => of_events.add((index, "events", CallIndex(0)), &text),
                Event::Finish(_) => of_events.add((index, "events", CallIndex(1)), "finish"),
                Event::ToolCallArguments { text, .. } => {
                    of_events.add((index, "events", CallIndex(2)), &text)
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

/// The content and the first call's arguments, read by one task.
async fn both(choice: Choice, seen: Seen) {
    let index = choice.index().0;
    let (mut content, mut calls) = (choice.content(), choice.tool_calls());
    let texts = async {
        while let Some(Ok(piece)) = content.next().await {
            seen.add((index, "both", CallIndex(0)), &piece);
        }
    };
    let arguments = async {
        while let Some(Ok(call)) = calls.next().await {
            if call.call_index() != CallIndex(0) {
                continue;
            }
            let mut arguments = call.arguments();
            while let Some(Ok(piece)) = arguments.next().await {
                seen.add((index, "both", CallIndex(1)), &piece);
            }
        }
    };
    join(texts, arguments).await;
}

/// Gives a stream read by read, and compares after each what the tasks have with what `Demux` has told.
async fn check(fixture: &Fixture, reads: &[&[u8]], how: &str) {
    let told = Seen::default();
    let mut demux = Demux::new(options(&fixture.options));
    let (reader, mut source) = mpsc::unbounded_channel::<Result<Vec<u8>, Infallible>>();
    let source = stream::poll_fn(move |cx| source.poll_recv(cx));
    let builder = Completions::builder()
        .config(options(&fixture.options))
        .implicit_timers(false);
    let completions = builder.from_byte_stream(source);
    let (mut choices, seen) = (completions.choices(), Seen::default());
    let of_choices = seen.clone();
    spawn(async move {
        while let Some(Ok(choice)) = choices.next().await {
            look(&choice, &of_choices);
        }
    });
    for (at, read) in reads.iter().enumerate() {
        demux.feed(read);
        tell(&mut demux, &told);
        let _over = reader.send(Ok(read.to_vec()));
        soon(&told, &seen, &format!("{}, {how}, read {at}", fixture.name)).await;
    }
    demux.finish();
    tell(&mut demux, &told);
    drop(reader);
    soon(
        &told,
        &seen,
        &format!("{}, {how}, at the end", fixture.name),
    )
    .await;
}

/// Nothing but other tasks' turns is needed until both are the same.
async fn soon(told: &Seen, seen: &Seen, how: &str) {
    for _ in 0..200 {
        if told.texts() == seen.texts() {
            return;
        }
        tokio::task::yield_now().await;
    }
    assert_eq!(seen.texts(), told.texts(), "{how}");
}

fn events(bytes: &[u8]) -> Vec<&[u8]> {
    let mut events = Vec::new();
    let (mut start, mut at) = (0, 0);
    while at < bytes.len() {
        let blank = bytes[at..].starts_with(b"\n\n");
        at += if blank { 2 } else { 1 };
        if blank {
            events.push(&bytes[start..at]);
            start = at;
        }
    }
    events.push(&bytes[start..]);
    events
}

/// Drops, doubles and swaps some of the events.
fn spoil(events: &mut Vec<&[u8]>, rng: &mut Rng) {
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
fn who_waits_has_each_read_before_the_next() {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.unwrap();
    for fixture in Fixture::all() {
        if fixture.bytes.len() > 64 * 1024 {
            continue; // hundreds of events of the same kind
        }
        let events = events(&fixture.bytes);
        runtime.block_on(check(&fixture, &events, "by event"));
        for size in [2, 3] {
            let reads: Vec<Vec<u8>> = events.chunks(size).map(<[_]>::concat).collect();
            let reads: Vec<&[u8]> = reads.iter().map(Vec::as_slice).collect();
            runtime.block_on(check(&fixture, &reads, &format!("{size} events a read")));
        }
        for seed in 0..4 {
            let mut spoilt = events.clone();
            spoil(&mut spoilt, &mut Rng::new(seed));
            runtime.block_on(check(&fixture, &spoilt, &format!("spoilt {seed}")));
        }
    }
}
