//! The actors against `Demux`: the same events for every fixture and split, on both kinds of runtime.

use futures::{StreamExt, stream};
use unbraid::{Completions, CompletionsBuilder, Demux, Sequenced};
use unbraid_testkit::cut::{bytewise, every_cut_in_two, random_cuts};
use unbraid_testkit::fixture::Fixture;

use crate::support::{options, strided};

/// The number of cuts in two of one fixture, evenly distributed.
const CUTS: usize = 100;

/// The events of a stream as lines, in three orders.
#[derive(Debug, PartialEq)]
pub(crate) struct Lists {
    all_events: Vec<String>,
    /// By choice, in order of appearance.
    choices: Vec<Vec<String>>,
    stream: Vec<String>,
    aggregate: String,
}

fn builder(fixture: &Fixture) -> CompletionsBuilder {
    Completions::builder().config(options(&fixture.options))
}

/// The events that `Demux` emits.
pub(crate) fn expected(fixture: &Fixture) -> Lists {
    let mut demux = Demux::new(options(&fixture.options));
    demux.feed(&fixture.bytes);
    demux.finish();
    let (mut all_events, mut stream) = (Vec::new(), Vec::new());
    while let Some(event) = demux.next_event() {
        let line = event.to_string();
        if event.choice.is_none() {
            stream.push(line.clone());
        }
        all_events.push(line);
    }
    let choices = demux.choices().map(|transcript| {
        let events = (0..transcript.event_count()).filter_map(|seq| transcript.event(seq));
        events.map(|event| event.to_string()).collect()
    });
    let choices = choices.collect();
    Lists {
        all_events,
        choices,
        stream,
        aggregate: format!("{}\n{}", demux.aggregate(), demux.aggregate_json()),
    }
}

/// The events that the actors emit for the same bytes, split into these reads.
pub(crate) async fn actual(fixture: &Fixture, reads: Vec<Vec<u8>>) -> Lists {
    let source = stream::iter(reads.into_iter().map(Ok::<_, std::io::Error>));
    let completions = builder(fixture).from_byte_stream(source);
    let all = completions
        .events()
        .filter_map(|event| async { event.ok() });
    let mut events: Vec<Sequenced> = all.collect().await;
    let lines = |events: &[Sequenced]| events.iter().map(ToString::to_string).collect();
    let stream: Vec<Sequenced> = events
        .iter()
        .filter(|event| event.choice.is_none())
        .cloned()
        .collect();
    let mut choices = Vec::new();
    let mut handles = completions.choices();
    while let Some(Ok(choice)) = handles.next().await {
        let events: Vec<Sequenced> = choice
            .events()
            .filter_map(|event| async { event.ok() })
            .collect()
            .await;
        choices.push(lines(&events));
    }
    events.sort_by_key(Sequenced::sort_key);
    let aggregate = format!(
        "{}\n{}",
        completions.aggregate().await,
        completions.aggregate_json().await
    );
    Lists {
        all_events: lines(&events),
        choices,
        stream: lines(&stream),
        aggregate,
    }
}

pub(crate) fn owned<'p>(reads: impl IntoIterator<Item = &'p [u8]>) -> Vec<Vec<u8>> {
    reads.into_iter().map(<[u8]>::to_vec).collect()
}

pub(crate) fn runtimes() -> [tokio::runtime::Runtime; 2] {
    [
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap(),
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap(),
    ]
}

#[track_caller]
pub(crate) fn check(fixture: &Fixture, how: &str, actual: &Lists, expected: &Lists) {
    assert_eq!(
        actual.all_events, expected.all_events,
        "{}: {how}",
        fixture.name
    );
    assert_eq!(actual.choices, expected.choices, "{}: {how}", fixture.name);
    assert_eq!(actual.stream, expected.stream, "{}: {how}", fixture.name);
    assert_eq!(
        actual.aggregate, expected.aggregate,
        "{}: {how}",
        fixture.name
    );
}

#[test]
fn the_actors_give_the_events_of_demux_on_every_fixture() {
    let fixtures = Fixture::all();
    for runtime in runtimes() {
        for fixture in &fixtures {
            let expected = expected(fixture);
            runtime.block_on(async {
                let single_read = actual(fixture, vec![fixture.bytes.clone()]).await;
                check(fixture, "in one read", &single_read, &expected);
                let bytewise_reads = actual(fixture, owned(bytewise(&fixture.bytes))).await;
                check(fixture, "byte by byte", &bytewise_reads, &expected);
                let random = actual(fixture, owned(random_cuts(&fixture.bytes, 7, 200))).await;
                check(fixture, "cut at random", &random, &expected);
            });
        }
    }
}

/// Streams are cut in two at many bytes, and at every `step`-th byte, once for each first byte, so that every cut is tested
/// on both kinds of runtime.
#[test]
fn the_actors_give_the_events_of_demux_at_every_cut() {
    const BUDGET: usize = 100_000; // bytes per fixture
    let runtimes = runtimes();
    for fixture in &Fixture::all() {
        let expected = expected(fixture);
        let bytes = fixture.bytes.as_slice();
        let stride = bytes.len().div_ceil(CUTS).max(1);
        for (n, (head, tail)) in every_cut_in_two(bytes).step_by(stride).enumerate() {
            let actual = runtimes[n % 2].block_on(actual(fixture, owned([head, tail])));
            check(
                fixture,
                &format!("cut at byte {}", head.len()),
                &actual,
                &expected,
            );
        }
        let step = (BUDGET / bytes.len().max(1)).clamp(8, bytes.len().max(8));
        for first in 0..step {
            for runtime in &runtimes {
                let actual = runtime.block_on(actual(fixture, owned(strided(bytes, first, step))));
                let how = format!("cut at {first} and every {step} bytes");
                check(fixture, &how, &actual, &expected);
            }
        }
    }
}
