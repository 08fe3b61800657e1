//! The memory of many completions, and of many consumers that do not read.

use std::time::Duration;

use futures::{StreamExt, future, stream};
use tokio::time::timeout;
use unbraid::{Completions, Limits};
use unbraid_adversarial::hostile::text;
use unbraid_core::limits::MAX_CHOICES;
use unbraid_testkit::script::{DONE, Script, Step, bytes, finish};

/// Every attack with the name of its row in `docs/limits.md`.
pub(crate) const ALL: [(&str, fn()); 3] = [
    ("10,000 completions, all asleep", ten_thousand_asleep),
    ("one sleeper beside seven readers", one_sleeper),
    ("completion_bytes, in actors", no_consumer_reads),
];

fn on_two_workers(work: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(work);
}

/// Waits until all actors have stopped after the last handle was dropped. A connection is drained for 100 ms at most.
async fn wait_for_actors() {
    const DEADLINE: Duration = Duration::from_secs(30);
    let metrics = tokio::runtime::Handle::current().metrics();
    let stopped = async {
        while metrics.num_alive_tasks() > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let result = timeout(DEADLINE, stopped).await;
    assert!(
        result.is_ok(),
        "{} tasks are alive",
        metrics.num_alive_tasks()
    );
}

/// Each one has sent a word, and its consumer waits for the next.
fn ten_thousand_asleep() {
    const COMPLETIONS: usize = 10_000;
    on_two_workers(async {
        let mut open = Vec::with_capacity(COMPLETIONS);
        for _ in 0..COMPLETIONS {
            let source = Script::new([bytes(text(0, "Hello")), Step::Stall]);
            let completions = Completions::builder().from_byte_stream(source);
            let choice = completions.choices().next().await.unwrap().unwrap();
            let mut content = choice.content();
            assert_eq!(content.next().await.unwrap().unwrap(), "Hello");
            let sleeper = tokio::spawn(async move { content.next().await.is_none() });
            open.push((completions, choice, sleeper));
        }
        for (completions, choice, sleeper) in open {
            completions.cancel();
            assert!(!sleeper.await.unwrap(), "the stream ends with an error");
            assert!(choice.finished().await.is_err());
        }
        wait_for_actors().await;
    });
}

/// Seven consumers read to the end. The eighth creates its stream and polls it only afterwards.
fn one_sleeper() {
    const CHOICES: u32 = 8;
    const ROUNDS: usize = 50_000;
    const DELTA: &str = "about twenty letters";
    on_two_workers(async {
        let round: String = (0..CHOICES).map(|index| text(index, DELTA)).collect();
        let ends: String = (0..CHOICES).map(|index| finish(index, "stop")).collect();
        let reads = stream::iter(0..ROUNDS).map(move |_| Ok::<_, std::io::Error>(round.clone()));
        let end = stream::iter([Ok(ends + DONE)]);
        let completions = Completions::builder().from_byte_stream(reads.chain(end));
        let mut all = completions.choices();
        let mut readers = Vec::new();
        let mut sleeper = None;
        while let Some(choice) = all.next().await {
            let choice = choice.unwrap();
            let mut content = choice.content();
            if choice.index().0 == 3 {
                sleeper = Some(content);
                continue;
            }
            readers.push(tokio::spawn(async move {
                let mut length = 0;
                while let Some(delta) = content.next().await {
                    length += delta.unwrap().len();
                }
                length
            }));
        }
        for length in future::join_all(readers).await {
            assert_eq!(length.unwrap(), ROUNDS * DELTA.len());
        }
        // The late consumer receives everything.
        let late = sleeper.unwrap().map(|delta| delta.unwrap().len());
        assert_eq!(
            late.fold(0, |sum, length| future::ready(sum + length))
                .await,
            ROUNDS * DELTA.len()
        );
        drop((all, completions));
        wait_for_actors().await;
    });
}

/// The smallest deltas for every choice, up to the limit. Every consumer has a stream and does not poll it.
fn no_consumer_reads() {
    on_two_workers(async {
        let limits = Limits::default();
        let read = |n: u32| {
            let choices = (0..200).map(|i| text((n + i) % MAX_CHOICES as u32, "a"));
            Ok::<_, std::io::Error>(choices.collect::<String>())
        };
        let reads = stream::iter((0..25_000).map(move |n| read(n * 200)));
        let completions = Completions::builder()
            .limits(limits)
            .from_byte_stream(reads);
        let mut all = completions.choices();
        let mut asleep = Vec::new();
        while let Some(Ok(choice)) = all.next().await {
            asleep.push(choice.content());
        }
        assert!(
            completions.closed().await.is_err(),
            "the limit ends the stream"
        );
        drop((all, asleep, completions));
        wait_for_actors().await;
    });
}
