//! Ten thousand random completions with random faults, on both kinds of runtime. Every kind of end occurs, and none hangs.
//!
//! It has a process of its own, because it measures the memory of the process.
#![cfg(test)]

use unbraid_adversarial::soak::{Tally, silence_scripted_panics, soak};

const COMPLETIONS: u64 = 5_000; // on each of two runtimes

#[test]
fn ten_thousand_completions_with_random_faults_all_end() {
    silence_scripted_panics();
    let current_thread = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let multi_thread = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let mut tally = Tally::default();
    let mut memory = Vec::new();
    for (runtime, seed) in [(current_thread, 1_000_000), (multi_thread, 2_000_000)] {
        for quarter in 0..4 {
            let part = COMPLETIONS / 4;
            let seeds = seed + quarter * part..seed + (quarter + 1) * part;
            tally.add(runtime.block_on(soak(seeds)));
            assert_eq!(runtime.metrics().num_alive_tasks(), 0, "actors are alive");
            memory.push(resident_bytes());
        }
    }
    println!("{tally:?}");
    println!("resident after each eighth: {memory:?}");
    assert_eq!((tally.hung, tally.unclosed), (0, 0));
    for end in [
        "finished",
        "done_without_finish",
        "interrupted",
        "server_error",
        "transport",
        "cancelled",
        "timed_out",
        "limit_exceeded",
        "lost",
    ] {
        assert!(
            tally.ends.get(end).is_some_and(|count| *count > 0),
            "{end} never occurred"
        );
    }
    assert_flat(&memory);
}

/// After the first eighth has warmed up the allocator, repeating the work takes no more memory.
fn assert_flat(memory: &[Option<u64>]) {
    const SLACK: u64 = 24 * 1024 * 1024;
    let known: Vec<u64> = memory.iter().copied().flatten().collect();
    if let [first, .., last] = known[..] {
        assert!(last < first + SLACK, "{known:?}");
    }
}

fn resident_bytes() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * 4096)
}
