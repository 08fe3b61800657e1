//! A large update is applied under its choice's lock. Meanwhile the other choices go on, and the list of all does too.

use std::{sync::mpsc, thread, time::Duration};

use futures::executor::block_on;
use tokio::runtime::Builder;
use unbraid_testkit::script::{Step, bytes, content, finish};

use super::read;
use crate::Completions;

/// What a consumer of all choices and one of the second choice see.
fn consume(completions: &Completions) -> (Vec<u32>, String) {
    block_on(async {
        let mut choices = completions.choices();
        let mut indices = Vec::new();
        for _ in 0..2 {
            indices.push(choices.next().await.unwrap().unwrap().index().0);
        }
        indices.push(completions.first().await.unwrap().index().0);
        indices.push(completions.choice(0).await.unwrap().index().0);
        let other = completions.choice(1).await.unwrap();
        (indices, other.text().await.unwrap())
    })
}

#[test]
fn a_locked_log_delays_neither_the_list_of_choices_nor_other_choices() {
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let _context = runtime.enter();
    let completions = read([
        bytes(content(0, "a")),
        bytes(content(1, "b")),
        Step::Pause(Duration::from_millis(100)),
        bytes(content(1, "c")),
        bytes(finish(1, "stop")),
        Step::Stall,
    ]);
    let first = block_on(completions.choice(0)).unwrap();
    let (locked, is_locked) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let holder = thread::spawn(move || {
        first.log().read(|_| {
            locked.send(()).unwrap();
            let _dropped = released.recv();
        });
    });
    is_locked.recv().unwrap();
    let (done, result) = mpsc::channel();
    let consumer = thread::spawn(move || done.send(consume(&completions)));
    let seen = result.recv_timeout(Duration::from_secs(20));
    drop(release);
    holder.join().unwrap();
    consumer.join().unwrap().unwrap();
    assert_eq!(seen, Ok((vec![0, 1, 0, 0], "bc".to_owned())));
}
