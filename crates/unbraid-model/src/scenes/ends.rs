//! The end of a value, which wakes every waiter.

use loom::thread;

use super::{Seat, check_most, run};
use crate::{sync::Arc, waiting::Topics, watched::Watched};

/// Every interest includes the end, so no waiter sleeps forever.
#[test]
fn the_end_wakes_every_waiter() {
    check_most(|| {
        let sealed = Arc::new(Watched::new(0_u8));
        let waiting = [Topics::TEXTS, Topics::CALLS].map(|topics| Seat::of(topics, &sealed));
        let readers = waiting.map(|mut watcher| {
            let ended = |value: &u8| (*value > 0).then_some(());
            thread::spawn(move || run(watcher.wait(ended)))
        });
        sealed.retire(|value| *value = 1);
        for reader in readers {
            reader.join().unwrap();
        }
        assert_eq!(sealed.waiting(), 0);
    });
}
