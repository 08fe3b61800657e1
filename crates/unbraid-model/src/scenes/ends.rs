//! The end of a value, for those who wait for anything of it.

use loom::thread;

use super::{Seat, check_most, run};
use crate::sync::{primitives::Arc, shared::Shared, wait_list::Interest};

/// Whatever the interest are that somebody waits for, the end is one of them: nobody waits for ever.
#[test]
fn the_end_wakes_those_who_wait_for_anything() {
    check_most(|| {
        let sealed = Arc::new(Shared::new(0_u8));
        let waiting = [Interest::TEXT, Interest::CALLS].map(|interest| Seat::of(interest, &sealed));
        let readers = waiting.map(|mut watcher| {
            let ended = |value: &u8| (*value > 0).then_some(());
            thread::spawn(move || run(watcher.wait_for(ended)))
        });
        sealed.detach_owner(|value| *value = 1);
        for reader in readers {
            reader.join().unwrap();
        }
        assert_eq!(sealed.waiter_count(), 0);
    });
}
