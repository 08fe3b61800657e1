//! The memory that is counted while several threads use the log.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use futures::FutureExt;

use super::{append, log, open};
use crate::LogStore;

#[test]
fn the_memory_is_counted_while_the_log_is_cleared() {
    let log = log();
    let is_over = Arc::new(AtomicBool::new(false));
    let using = || {
        let (log, is_over) = (log.clone(), Arc::clone(&is_over));
        thread::spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                let (id, mut writer) = open(&log).now_or_never().unwrap();
                append(&mut *writer, 1, 1000).now_or_never().unwrap();
                log.erase(&id).now_or_never().unwrap().unwrap();
            }
        })
    };
    let users = [using(), using(), using()];
    for _ in 0..20_000 {
        log.clear();
    }
    is_over.store(true, Ordering::Relaxed);
    for user in users {
        user.join().unwrap();
    }
    assert_eq!((log.streams(), log.bytes()), (0, 0));
    assert!(log.make_room());
}
