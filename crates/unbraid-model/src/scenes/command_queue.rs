//! Commands between handles and the task that receives them, like the reader.

use std::{
    future::poll_fn,
    task::{Context, Poll, Waker},
};

use loom::thread;

use super::{ScopedWatcher, check, check_most, run};
use crate::{
    sync::command_queue::CommandQueue,
    sync::primitives::Arc,
    sync::shared::{ApplyPending, Pending, Shared},
    sync::wait_list::{Interest, WakeList},
};

fn queue() -> Arc<CommandQueue<u8>> {
    Arc::new(CommandQueue::default())
}

fn send(commands: &Arc<CommandQueue<u8>>, command: u8) -> thread::JoinHandle<()> {
    let commands = Arc::clone(commands);
    thread::spawn(move || assert!(commands.send(command)))
}

/// Receives this many commands, each of them once.
async fn receive(
    commands: &CommandQueue<u8>,
    registered: &mut Option<Waker>,
    count: usize,
) -> Vec<u8> {
    let mut received = Vec::new();
    while received.len() < count {
        received.extend(poll_fn(|cx| commands.poll(cx, registered)).await);
    }
    received.sort_unstable();
    received
}

#[test]
fn commands_of_two_threads_are_both_received() {
    check_most(|| {
        let commands = queue();
        let senders = [send(&commands, 1), send(&commands, 2)];
        assert_eq!(run(receive(&commands, &mut None, 2)), [1, 2]);
        for sender in senders {
            sender.join().unwrap();
        }
    });
}

#[test]
fn a_command_after_another_is_received() {
    check(|| {
        let commands = queue();
        let sending = Arc::clone(&commands);
        let sender = thread::spawn(move || {
            assert!(sending.send(1));
            assert!(sending.send(2));
            assert!(sending.send(3));
        });
        assert_eq!(run(receive(&commands, &mut None, 3)), [1, 2, 3]);
        sender.join().unwrap();
    });
}

#[test]
fn a_command_is_received_by_a_task_with_another_waker() {
    check_most(|| {
        let commands = queue();
        let senders = [send(&commands, 1), send(&commands, 2)];
        let mut registered = None;
        // It waits with one waker first, then with another.
        let first = commands.poll(&Context::from_waker(Waker::noop()), &mut registered);
        let mut all = match first {
            Poll::Ready(commands) => commands,
            Poll::Pending => Vec::new(),
        };
        all.extend(run(receive(&commands, &mut registered, 2 - all.len())));
        all.sort_unstable();
        assert_eq!(all, [1, 2]);
        for sender in senders {
            sender.join().unwrap();
        }
    });
}

#[test]
fn a_command_sent_twice_is_received_once_or_twice() {
    check_most(|| {
        let commands = queue();
        let senders = [send(&commands, 1), send(&commands, 1)];
        let mut registered = None;
        assert_eq!(run(receive(&commands, &mut registered, 1)), [1]);
        for sender in senders {
            sender.join().unwrap();
        }
        let rest = commands.poll(&Context::from_waker(Waker::noop()), &mut registered);
        assert!(rest.is_pending() || rest == Poll::Ready(vec![1]));
    });
}

impl ApplyPending for u8 {
    fn pending(&self) -> Pending {
        Pending::Nothing
    }

    fn apply_pending(&mut self) {}
}

#[test]
fn a_task_that_is_woken_for_other_work_receives_every_command() {
    check_most(|| {
        let commands = queue();
        let source = Arc::new(Shared::new(0_u8));
        let mut watcher = ScopedWatcher::new(&source);
        let sender = send(&commands, 1);
        let writer = thread::spawn(move || {
            let mut wake_list = WakeList::default();
            for _ in 0..2 {
                source.defer(&mut wake_list, |value| {
                    *value += 1;
                    Interest::ALL
                });
            }
        });
        let (mut registered, mut received, mut read) = (None, false, 0);
        run(poll_fn(|cx| {
            while let Poll::Ready(commands) = commands.poll(cx, &mut registered) {
                assert_eq!(commands, [1]);
                received = true;
            }
            while read < 2 {
                let more = |value: &u8| match *value {
                    value if value > read => Poll::Ready(value),
                    _ => Poll::Pending,
                };
                let Poll::Ready(value) = watcher.poll(cx, more) else {
                    return Poll::Pending;
                };
                read = value;
            }
            if received {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        }));
        sender.join().unwrap();
        writer.join().unwrap();
    });
}

/// A choice appears, and is cancelled, while the thread that starts its reader has not yet gone on.
#[test]
fn a_command_sent_while_the_task_is_being_started_is_received() {
    check_most(|| {
        let commands = queue();
        let spawned = Arc::clone(&commands);
        let task = thread::spawn(move || {
            assert_eq!(run(receive(&spawned, &mut None, 1)), [1]);
            assert!(spawned.close().is_empty());
        });
        let sender = send(&commands, 1);
        sender.join().unwrap();
        task.join().unwrap();
        assert!(!commands.send(2), "the task has ended");
    });
}

#[test]
fn a_command_sent_during_the_end_is_received_or_returned_or_refused() {
    check_most(|| {
        let commands = queue();
        let senders = [1, 2].map(|command| {
            let commands = Arc::clone(&commands);
            thread::spawn(move || (command, commands.send(command)))
        });
        let cx = Context::from_waker(Waker::noop());
        let mut all = match commands.poll(&cx, &mut None) {
            Poll::Ready(received) => received,
            Poll::Pending => Vec::new(),
        };
        all.extend(commands.close());
        for sender in senders {
            let (command, taken) = sender.join().unwrap();
            assert_eq!(all.contains(&command), taken);
        }
    });
}

#[test]
fn nothing_is_received_after_the_end() {
    check(|| {
        let commands = queue();
        let sending = Arc::clone(&commands);
        let sender = thread::spawn(move || sending.send(1));
        let returned = commands.close();
        assert_eq!(sender.join().unwrap(), *returned == [1]);
        let received = commands.poll(&Context::from_waker(Waker::noop()), &mut None);
        assert!(received.is_pending());
    });
}
