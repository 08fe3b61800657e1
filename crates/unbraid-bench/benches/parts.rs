//! `cargo bench -p unbraid-bench`
//!
//! Benchmarks the parts of the core in the order in which bytes pass them, with `memchr` as the minimum. Times are CPU times
//! of the process.

use std::{hint::black_box, time::Duration};

use bytes::Bytes;
use cpu_time::ProcessTime;
use criterion::{
    Throughput,
    measurement::{Measurement, ValueFormatter, WallTime},
};
use unbraid_bench::parts::{arguments, braided, fragments};
use unbraid_core::{
    ChoiceIndex, CompletionKind, Config, Demux, Limits, Position, Transcript, Update,
    internal::{ChoiceMachine, Delta, DeltaKind, FrameLimits, Framer, TextDelta, UpdateReader},
    json::{Field, Partial, Pointer},
};

const CHUNKS: usize = 20_000;
const READ_BYTES: usize = 16 * 1024;
const ARGUMENT_BYTES: usize = 1_000_000;

type Criterion = criterion::Criterion<Cpu>;

fn main() {
    let mut criterion = criterion::Criterion::default()
        .with_measurement(Cpu)
        .sample_size(20)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(3))
        .configure_from_args();
    let body = braided(CHUNKS);
    stream_by_bytes(&mut criterion, &body);
    choices_by_updates(&mut criterion, &body);
    json_by_bytes(&mut criterion);
    aggregate_by_bytes(&mut criterion, &body);
    criterion.final_summary();
}

fn reads(body: &Bytes) -> impl Iterator<Item = &[u8]> {
    body.chunks(READ_BYTES)
}

/// From bytes to events, in reads of 16 KiB.
///
/// The update reader alone emits updates. Inside the demultiplexer it emits text deltas, which cost less.
fn stream_by_bytes(criterion: &mut Criterion, body: &Bytes) {
    let mut group = criterion.benchmark_group("stream");
    group.throughput(Throughput::ElementsAndBytes {
        elements: CHUNKS as u64,
        bytes: body.len() as u64,
    });
    group.bench_function("memchr", |bencher| {
        let mut copy = Vec::new();
        bencher.iter(|| {
            let mut lines = 0;
            for read in reads(body) {
                lines += memchr::memchr_iter(b'\n', read).count();
                copy.clear();
                copy.extend_from_slice(read);
                black_box(&copy);
            }
            lines
        });
    });
    group.bench_function("framing", |bencher| bencher.iter(|| frames(body)));
    group.bench_function("update reader", |bencher| {
        bencher.iter(|| {
            let mut updates = 0;
            decode(body, &mut |update| {
                updates += usize::from(black_box(update).last_of_event);
            });
            updates
        });
    });
    group.bench_function("demux", |bencher| {
        bencher.iter(|| {
            let mut demux = Demux::new(Config::default());
            let mut events = 0;
            for read in reads(body) {
                demux.feed(read);
                while let Some(event) = demux.next_event() {
                    black_box(event);
                    events += 1;
                }
            }
            demux.finish();
            (demux, events)
        });
    });
    group.finish();
}

fn frames(body: &Bytes) -> usize {
    let limits = Limits::default();
    let limits = FrameLimits::new(limits.line_bytes, limits.event_bytes);
    let mut framer = Framer::new(limits, false);
    let mut frames = 0;
    for mut read in reads(body) {
        while let Some(frame) = framer.next(&mut read) {
            frames += usize::from(black_box(frame).is_ok());
        }
    }
    frames
}

fn decode(body: &Bytes, sink: &mut dyn FnMut(&Update<'_>)) {
    let mut reader = UpdateReader::new(&Config::default());
    for mut read in reads(body) {
        while reader
            .next(&mut read, sink)
            .is_some_and(|event| event.is_ok())
        {}
    }
}

/// From decoded updates to transcripts: with updates, and with text deltas where an update has nothing else.
fn choices_by_updates(criterion: &mut Criterion, body: &Bytes) {
    let mut updates: Vec<Update<'static>> = Vec::new();
    decode(body, &mut |update| {
        updates.push(update.clone().into_owned())
    });
    let mut group = criterion.benchmark_group("choices");
    group.throughput(Throughput::Elements(updates.len() as u64));
    group.bench_function("updates", |bencher| {
        bencher.iter(|| {
            let mut choices = Choices::default();
            for update in &updates {
                choices.with(update.choice, |machine, transcript| {
                    machine.apply(Delta::Update(update), position(update), transcript);
                });
            }
            choices
        });
    });
    let deltas: Vec<Option<TextDelta<'_>>> = updates.iter().map(text_delta).collect();
    group.bench_function("text deltas", |bencher| {
        bencher.iter(|| {
            let mut choices = Choices::default();
            for (update, delta) in updates.iter().zip(&deltas) {
                let delta = delta.as_ref().map_or(Delta::Update(update), Delta::Text);
                choices.with(update.choice, |machine, transcript| {
                    machine.apply(delta, position(update), transcript);
                });
            }
            choices
        });
    });
    group.finish();
}

/// A machine and a transcript for each choice.
#[derive(Default)]
struct Choices(Vec<(ChoiceMachine, Transcript)>);

impl Choices {
    fn with(
        &mut self,
        choice: Option<ChoiceIndex>,
        work: impl FnOnce(&mut ChoiceMachine, &mut Transcript),
    ) {
        let Some(choice) = choice else {
            return;
        };
        let slot = choice.0 as usize;
        while self.0.len() <= slot {
            let index = ChoiceIndex(u32::try_from(self.0.len()).unwrap_or(u32::MAX));
            let transcript = Transcript::new(index, CompletionKind::Chat);
            self.0
                .push((ChoiceMachine::new(Config::default()), transcript));
        }
        if let Some((machine, transcript)) = self.0.get_mut(slot) {
            work(machine, transcript);
        }
    }
}

fn position(update: &Update<'_>) -> Position {
    Position::new(update.event_index, 0)
}

/// The text delta that is equivalent to an update, as the decoder emits it.
fn text_delta<'u>(update: &'u Update<'_>) -> Option<TextDelta<'u>> {
    let (text_kind, text) = match (&update.content, &*update.tool_calls) {
        (Some(content), []) => (DeltaKind::Content, content),
        (None, [call]) if call.name.is_none() => (
            DeltaKind::Arguments(call.wire_index?),
            call.arguments.as_ref()?,
        ),
        _ => return None,
    };
    let is_text_only = update.finish_reason.is_none() && !text.text.is_empty();
    let choice = update.choice?;
    is_text_only.then(|| {
        TextDelta::new(update.event_index, choice, text_kind, &text.text)
            .with_kind(update.kind)
            .with_role(update.role.as_deref())
    })
}

/// Arguments of 1 MB in fragments of four bytes.
fn json_by_bytes(criterion: &mut Criterion) {
    let arguments = arguments(ARGUMENT_BYTES);
    let mut group = criterion.benchmark_group("json");
    group.throughput(Throughput::Bytes(arguments.len() as u64));
    group.bench_function("memchr", |bencher| {
        bencher.iter(|| memchr::memchr_iter(b'"', black_box(arguments.as_bytes())).count());
    });
    for path in ["/answer", "/nowhere"] {
        let Ok(pointer) = Pointer::parse(path) else {
            continue;
        };
        group.bench_function(format!("field {path}"), |bencher| {
            bencher.iter(|| {
                let mut field = Field::new(pointer.clone());
                let mut length = 0;
                for fragment in fragments(&arguments) {
                    field.feed(fragment, &mut |text| length += text.len());
                }
                length
            });
        });
    }
    group.bench_function("partial", |bencher| {
        bencher.iter(|| {
            let mut partial = Partial::default();
            for fragment in fragments(&arguments) {
                partial.feed(fragment);
            }
            partial
        });
    });
    group.finish();
}

/// The non-streamed response of a finished completion.
fn aggregate_by_bytes(criterion: &mut Criterion, body: &Bytes) {
    let mut demux = Demux::new(Config::default());
    demux.feed(body);
    demux.finish();
    let mut group = criterion.benchmark_group("aggregate");
    group.throughput(Throughput::Bytes(body.len() as u64));
    group.bench_function("finished", |bencher| bencher.iter(|| demux.aggregate()));
    group.finish();
}

/// CPU time of the process, as in the tables. Wall-clock time would include other processes of a shared machine.
struct Cpu;

impl Measurement for Cpu {
    type Intermediate = ProcessTime;
    type Value = Duration;

    fn start(&self) -> ProcessTime {
        ProcessTime::now()
    }

    fn end(&self, started: ProcessTime) -> Duration {
        started.elapsed()
    }

    fn add(&self, one: &Duration, other: &Duration) -> Duration {
        *one + *other
    }

    fn zero(&self) -> Duration {
        Duration::ZERO
    }

    fn to_f64(&self, time: &Duration) -> f64 {
        WallTime.to_f64(time)
    }

    fn formatter(&self) -> &dyn ValueFormatter {
        WallTime.formatter()
    }
}
