//! Readers whose wakers use the log.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    task::{Context, Wake, Waker},
    thread,
    time::Duration,
};

use futures::FutureExt;

use super::{append, log, open, seal};
use crate::{LogStore, MemoryLog, Meta, Seq, StreamId};

/// Reads the log, as a waker that runs its task at once does.
struct ReadingWaker {
    log: MemoryLog,
    wakeups: AtomicUsize,
}

impl Wake for ReadingWaker {
    fn wake(self: Arc<Self>) {
        let _streams = self.log.streams();
        self.wakeups.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_waker_may_read_the_log_whatever_has_woken_it() {
    type Act = fn(&MemoryLog, &StreamId);
    let acts: [Act; 5] = [
        |log, id| {
            let meta = Meta::new("/v1/completions", 1);
            let mut writer = log.reopen(id, &meta).now_or_never().unwrap().unwrap();
            seal(&mut *writer).now_or_never().unwrap();
        },
        |log, id| log.erase(id).now_or_never().unwrap().unwrap(),
        |log, id| {
            let meta = Meta::new("/v1/completions", 1);
            drop(log.reopen(id, &meta).now_or_never().unwrap().unwrap());
            let _lost = log.seal_lost(id).now_or_never().unwrap().unwrap();
        },
        |log, _| log.clear(),
        |log, id| {
            let meta = Meta::new("/v1/completions", 1);
            let mut writer = log.reopen(id, &meta).now_or_never().unwrap().unwrap();
            append(&mut *writer, 1, 10).now_or_never().unwrap();
        },
    ];
    for (number, act) in acts.into_iter().enumerate() {
        let (done, has_ended) = mpsc::channel();
        thread::spawn(move || {
            let log = log();
            let (id, _writer) = open(&log).now_or_never().unwrap();
            let waker = Arc::new(ReadingWaker {
                log: log.clone(),
                wakeups: AtomicUsize::new(0),
            });
            let mut reader = log.journal(&id).unwrap().reader(Seq::START);
            let mut cx = Context::from_waker(Waker::noop());
            assert!(reader.poll_batch(&mut cx, 1).is_pending());
            let shared = Waker::from(Arc::clone(&waker));
            cx = Context::from_waker(&shared);
            assert!(reader.poll_batch(&mut cx, 1).is_pending());
            act(&log, &id);
            let _read = done.send(waker.wakeups.load(Ordering::Relaxed));
        });
        let wakeups = has_ended.recv_timeout(Duration::from_secs(20));
        assert_eq!(wakeups, Ok(1), "act {number}");
    }
}
