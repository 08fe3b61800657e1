//! The peak of the heap under attack. A single test, because concurrent tests would count each other's bytes.
#![cfg(test)]

use std::fmt::Write as _;
use std::fs;
use std::time::{Duration, Instant};

use peak_alloc::PeakAlloc;
use unbraid_adversarial::hostile::{FLOODS, LIMIT_STREAMS, Parts, event::EVENTS};
use unbraid_core::{Config, Demux, json::Partial, limits::MAX_ARGUMENT_DEPTH};
use unbraid_testkit::fixture::workspace_root;

mod crowd;
mod event;

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

const MIB: f64 = 1024.0 * 1024.0;

/// The size of a read.
const READ: usize = 16 * 1024;

#[test]
fn no_attack_exceeds_the_documented_memory() {
    if std::env::var_os("UNBRAID_STRESS_FOLLOWS").is_some() {
        println!(
            "skipped: UNBRAID_STRESS_FOLLOWS says that this test runs again, with larger floods and optimized"
        );
        return;
    }
    let table = Table::read();
    let mut report = String::new();
    for attack in LIMIT_STREAMS {
        let peak = peak(|| read((attack.stream)()));
        table.check(attack.name, peak, &mut report);
    }
    for event in EVENTS {
        let peaks = event::READERS.map(|(name, read)| (name, peak(|| read(event))));
        let max = peaks.iter().map(|(_, peak)| *peak).fold(0.0, f64::max);
        table.check(event.name, max, &mut report);
        writeln!(report, "    {peaks:.0?}").unwrap();
    }
    table.check("MAX_PARTIAL_NODES", peak(partial), &mut report);
    table.check("MAX_ARGUMENT_DEPTH", peak(deep_arguments), &mut report);
    for flood in FLOODS {
        let (peak, times) = flooded(flood.name, FLOOD, flood.part);
        table.check("a flood", peak, &mut report);
        writeln!(report, "    {}: {}", flood.name, format_times(&times)).unwrap();
    }
    let all = |n: u64| (FLOODS[n as usize % FLOODS.len()].part)(n);
    let (peak_of_all, times) = flooded("every flood", total_flood(), all);
    table.check("every flood at once", peak_of_all, &mut report);
    writeln!(report, "    {}", format_times(&times)).unwrap();
    for (name, attack) in crowd::ALL {
        table.check(name, peak(attack), &mut report);
    }
    println!("{report}");
    assert!(!report.contains("TOO"), "{report}");
}

/// The peak of the heap during `work`, in MiB, without what was allocated before.
fn peak(work: impl FnOnce()) -> f64 {
    let before = HEAP.current_usage();
    HEAP.reset_peak_usage();
    work();
    let peak = HEAP.peak_usage().saturating_sub(before);
    peak as f64 / MIB
}

/// Reads a stream to its end and takes the events of each read.
fn read(stream: Parts) {
    let mut demux = Demux::new(Config::default());
    let mut buffer = String::with_capacity(2 * READ);
    for part in stream {
        if part.len() > READ {
            feed(&mut demux, &part);
            continue;
        }
        buffer.push_str(&part);
        if buffer.len() >= READ {
            feed(&mut demux, &buffer);
            buffer.clear();
        }
        if demux.closed().is_some() {
            break; // the limit ends the stream
        }
    }
    feed(&mut demux, &buffer);
    demux.finish();
    while demux.next_event().is_some() {}
}

fn feed(demux: &mut Demux, bytes: &str) {
    for read in bytes.as_bytes().chunks(READ) {
        demux.feed(read);
        while demux.next_event().is_some() {}
    }
}

fn partial() {
    let mut partial = Partial::default();
    partial.feed("[");
    for _ in 0..200_000 {
        partial.feed("{\"a\":[]},");
    }
    assert!(partial.is_full());
    let _value = partial.value();
}

fn deep_arguments() {
    let mut partial = Partial::default();
    for _ in 0..10_000 {
        partial.feed(&"[".repeat(MAX_ARGUMENT_DEPTH / 2));
        partial.feed(&"{\"a\":".repeat(MAX_ARGUMENT_DEPTH));
    }
}

/// The size of a flood of one kind.
const FLOOD: usize = 8 * 1024 * 1024;

/// The size of the flood of every kind, in bytes: `UNBRAID_FLOOD_MIB`.
fn total_flood() -> usize {
    let number = std::env::var("UNBRAID_FLOOD_MIB").ok();
    let mib: usize = number.map_or(64, |n| n.parse().expect("UNBRAID_FLOOD_MIB is a number"));
    mib * 1024 * 1024
}

/// The peak of a flood, and the minimum time of a read in each quarter of it.
fn flooded(name: &str, bytes: usize, part: impl Fn(u64) -> String) -> (f64, [Duration; 4]) {
    let mut times = [Duration::MAX; 4];
    let mut buffer = String::with_capacity(2 * READ);
    let peak = peak(|| {
        let mut demux = Demux::new(Config::default());
        let mut n = 0_u64;
        for time in &mut times {
            let mut fed = 0;
            while fed < bytes / 4 {
                // Every read has all kinds of parts, so that the times can be compared.
                while buffer.len() < READ || !n.is_multiple_of(FLOODS.len() as u64) {
                    buffer.push_str(&part(n));
                    n += 1;
                }
                fed += buffer.len();
                let cost = timed(|| feed(&mut demux, &buffer));
                *time = cost.mul_f64(READ as f64 / buffer.len() as f64).min(*time);
                buffer.clear();
            }
        }
        assert!(demux.closed().is_none(), "{name} ends the stream");
        demux.finish();
    });
    let [first, .., last] = times;
    // With quadratic cost, the last quarter would take seven times as long as the first.
    assert!(last < first * 3, "{name}: {}", format_times(&times));
    (peak, times)
}

#[expect(clippy::disallowed_methods, reason = "the test measures time")]
fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn format_times(times: &[Duration]) -> String {
    let formatted: Vec<String> = times
        .iter()
        .map(|t| format!("{:.1}", t.as_secs_f64() * 1e6))
        .collect();
    format!("{} us a read", formatted.join(", "))
}

/// The rows of `docs/limits.md`: the name in the first cell, and the limit in MiB in the last cell.
struct Table(Vec<(String, f64)>);

impl Table {
    fn read() -> Self {
        let text = fs::read_to_string(workspace_root().join("docs/limits.md")).unwrap();
        let row = |line: &str| {
            let cells: Vec<&str> = line.strip_prefix('|')?.split('|').map(str::trim).collect();
            let max = cells
                .iter()
                .rev()
                .find_map(|cell| cell.strip_suffix(" MiB"))?;
            Some((cells.first()?.replace('`', ""), max.parse().ok()?))
        };
        Self(text.lines().filter_map(row).collect())
    }

    fn check(&self, name: &str, peak: f64, report: &mut String) {
        let row = self.0.iter().find(|(known, _)| known == name);
        let max = row.map_or(0.0, |(_, max)| *max);
        let verdict = if peak > max { "TOO MUCH" } else { "" };
        writeln!(report, "{name}: {peak:.1} of {max} MiB {verdict}").unwrap();
    }
}
