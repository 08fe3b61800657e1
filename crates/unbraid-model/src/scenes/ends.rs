//! The end of a value wakes every waiter.

use loom::thread;

use super::{ScopedWatcher, check_most, run};
use crate::sync::{primitives::Arc, shared::Shared, wait_list::Interest};

/// The end concerns every interest, so no waiter is left hanging.
#[test]
fn the_end_wakes_waiters_of_every_interest() {
    check_most(|| {
        let sealed = Arc::new(Shared::new(0_u8));
        let waiting = [Interest::TEXT, Interest::CALLS]
            .map(|interest| ScopedWatcher::with_interest(interest, &sealed));
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
