//! The end of a value, for those who wait for anything of it.

use loom::thread;

use super::{Seat, check_most, run};
use crate::sync::{primitives::Arc, shared::Watched, wait_list::Topics};

/// Whatever the topics are that somebody waits for, the end is one of them: nobody waits for ever.
#[test]
fn the_end_wakes_those_who_wait_for_anything() {
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
