//! Many completions, and many consumers that sleep: what the actors hold for them.

use std::time::Duration;

use futures::{StreamExt, future, stream};
use tokio::time::timeout;
use unbraid::{Completions, Limits};
use unbraid_adversarial::hostile::text;
use unbraid_core::limits::MAX_CHOICES;
use unbraid_testkit::script::{DONE, Script, Step, bytes, finish};

/// Every attack and its row in `docs/limits.md`.
pub(crate) const ALL: [(&str, fn()); 3] = [
    ("10,000 completions, all asleep", ten_thousand_asleep),
    ("one sleeper beside seven readers", one_sleeper),
    ("completion_bytes, in actors", nobody_reads),
];

fn on_two_workers(work: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(work);
}

/// After all handles are gone, so are all actors: a connection is drained for 100 ms at most.
async fn nobody_is_left() {
    const DEADLINE: Duration = Duration::from_secs(30);
    let metrics = tokio::runtime::Handle::current().metrics();
    let gone = async {
        while metrics.num_alive_tasks() > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let left = timeout(DEADLINE, gone).await;
    assert!(left.is_ok(), "{} tasks are left", metrics.num_alive_tasks());
}

/// Each has sent its role and a word, and its consumer waits for the next one.
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
            assert!(!sleeper.await.unwrap(), "it ends with an error");
            assert!(choice.finished().await.is_err());
        }
        nobody_is_left().await;
    });
}

/// Seven read to the end; the eighth takes its stream and never polls it.
fn one_sleeper() {
    const CHOICES: u32 = 8;
    const ROUNDS: usize = 50_000;
    const PIECE: &str = "about twenty letters";
    on_two_workers(async {
        let round: String = (0..CHOICES).map(|index| text(index, PIECE)).collect();
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
            assert_eq!(length.unwrap(), ROUNDS * PIECE.len());
        }
        // It has missed nothing.
        let late = sleeper.unwrap().map(|delta| delta.unwrap().len());
        assert_eq!(
            late.fold(0, |sum, length| future::ready(sum + length))
                .await,
            ROUNDS * PIECE.len()
        );
        drop((all, completions));
        nobody_is_left().await;
    });
}

/// The smallest deltas, for every choice, up to the limit; every consumer has its cursor and sleeps.
fn nobody_reads() {
    on_two_workers(async {
        let limits = Limits::default();
        let read = |n: u32| {
            let choices = (0..200).map(|at| text((n + at) % MAX_CHOICES as u32, "a"));
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
        assert!(completions.closed().await.is_err(), "the limit ends it");
        drop((all, asleep, completions));
        nobody_is_left().await;
    });
}
