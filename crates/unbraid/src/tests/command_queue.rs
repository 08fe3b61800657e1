//! The commands that handles send to a reader: queued from the moment it is created, and refused once it is gone.

use std::{
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
    thread,
    time::Duration,
};

use unbraid_core::ChoiceIndex;
use unbraid_testkit::script::{Script, Step, bytes, content};

use super::{read, soon};
use crate::{
    Completions, Source,
    control::{CancelOnDrop, Command, CommandReceiver, ReaderControl, ReaderControls},
    reader::ReaderActor,
    sync::command_queue::CommandQueue,
};

struct NoopWaker;

impl Wake for NoopWaker {
    fn wake(self: Arc<Self>) {}
}

fn poll(control: &ReaderControl) -> Poll<Vec<Command>> {
    control.poll(&Context::from_waker(Waker::noop()), &mut None)
}

#[test]
fn a_command_sent_before_the_reader_has_started_is_received() {
    let control = ReaderControl::default();
    let cancel = Command::Cancel(ChoiceIndex(3));
    control.send(cancel.clone());
    assert_eq!(poll(&control), Poll::Ready(vec![cancel]));
    assert_eq!(poll(&control), Poll::Pending);
}

#[test]
fn a_command_to_all_readers_reaches_one_that_is_being_started() {
    for command in [
        Command::CancelAll,
        Command::KeepOnly([ChoiceIndex(0)].into()),
    ] {
        let controls = ReaderControls::default();
        let control = controls.add().unwrap();
        controls.send(command.clone());
        assert!(controls.add().is_none(), "the completion has ended");
        assert_eq!(poll(&control), Poll::Ready(vec![command]));
    }
}

#[test]
fn a_reader_that_is_being_started_learns_that_every_handle_is_gone() {
    let controls = ReaderControls::default();
    let control = controls.add().unwrap();
    drop(CancelOnDrop { controls });
    assert_eq!(poll(&control), Poll::Ready(vec![Command::Abandon]));
}

/// The actor is being started when the last handle is dropped, so neither the task nor the actor could be ended from outside.
#[tokio::test]
async fn a_reader_whose_actor_is_being_started_learns_that_every_handle_is_gone() {
    let controls = ReaderControls::default();
    let control = controls.add().unwrap();
    control.set_task(tokio::spawn(std::future::pending()));
    let task = control.take_task().expect("recorded");
    drop(CancelOnDrop { controls });
    assert_eq!(poll(&control), Poll::Ready(vec![Command::Abandon]));
    let actor = ReaderActor::start(task).expect("the actor runs");
    control.set_supervised(actor.clone());
    assert!(control.reader().is_none(), "nobody is left to kill it");
    actor.kill();
}

/// As a task of its own, and as that of an actor.
#[tokio::test(start_paused = true)]
async fn the_source_is_dropped_with_the_last_handle_in_every_stage() {
    for reads in 1..=4 {
        let mut steps = vec![bytes(content(0, "a"))];
        for _ in 1..reads {
            steps.extend([Step::Yield, bytes(content(0, "a"))]);
        }
        steps.push(Step::Stall);
        let source = Script::new(steps);
        let probe = source.probe();
        let completions = Completions::from_byte_stream(source);
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert_eq!(completions.reader().is_some(), reads > 1);
        assert!(!probe.closed());
        drop(completions);
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert!(probe.closed(), "after {reads} reads");
    }
}

#[test]
fn a_closed_queue_refuses_commands_and_returns_the_unread_ones() {
    let commands = CommandQueue::default();
    let noop = Arc::new(NoopWaker);
    let waker = Waker::from(Arc::clone(&noop));
    let mut registered = None;
    let polled = commands.poll(&Context::from_waker(&waker), &mut registered);
    assert!(polled.is_pending());
    drop((waker, registered));
    assert_eq!(Arc::strong_count(&noop), 2);
    assert!(commands.send(1));
    assert_eq!(*commands.close(), [1]);
    assert!(!commands.send(2));
    let polled = commands.poll(&Context::from_waker(Waker::noop()), &mut None);
    assert!(polled.is_pending());
    assert_eq!(*commands.close(), [0_u8; 0]);

    let commands = CommandQueue::<u8>::default();
    let waker = Waker::from(Arc::clone(&noop));
    let polled = commands.poll(&Context::from_waker(&waker), &mut None);
    assert!(polled.is_pending());
    drop(waker);
    assert_eq!(*commands.close(), [0_u8; 0]);
    assert_eq!(Arc::strong_count(&noop), 1, "the queue keeps no waker");
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_is_done_before_its_start_is_known_is_not_kept() {
    let control = Arc::new(ReaderControl::default());
    assert!(control.take_task().is_none(), "not recorded yet");
    control.set_task(tokio::spawn(async {}));
    let task = control.take_task().expect("recorded");
    let actor = ReaderActor::start(task).expect("the actor runs");
    control.set_supervised(actor.clone());
    assert!(control.reader().is_some());
    drop(CommandReceiver::new(&control));
    assert!(control.reader().is_none());
    control.set_supervised(actor);
    assert!(
        control.reader().is_none(),
        "it would keep a dead mailbox alive"
    );
    control.set_task(tokio::spawn(async {}));
    assert!(control.take_task().is_none());
    control.send(Command::CancelAll);
    assert!(
        poll(&control).is_pending(),
        "no reader is left to receive it"
    );
}

#[tokio::test(start_paused = true)]
async fn a_killed_reader_refuses_commands() {
    for has_actor in [false, true] {
        let mut steps = vec![bytes(content(0, "a"))];
        if has_actor {
            steps.extend([Step::Yield, bytes(content(0, "a"))]);
        }
        steps.push(Step::Stall);
        let completions = read(steps);
        let choice = soon(completions.choice(0)).await.unwrap();
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert_eq!(completions.reader().is_some(), has_actor);
        completions.kill_reader();
        assert!(soon(choice.finished()).await.is_err());
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert!(completions.reader().is_none());
        choice.cancel();
    }
}

/// One thread adds sources while another cancels each choice as it appears.
#[test]
fn a_choice_that_is_cancelled_as_it_appears_ends() {
    const SOURCES: u32 = 3000;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let (completions, source_set) = Completions::builder().source_set();
    let entered = runtime.handle().clone();
    let adding = thread::spawn(move || {
        let _entered = entered.enter();
        for index in 0..SOURCES {
            let script = Script::new([bytes(content(0, "a")), Step::Stall]);
            source_set
                .add(Source::from_byte_stream(script), index..index + 1)
                .unwrap();
        }
    });
    let closed = runtime.block_on(async {
        let mut choices = completions.choices();
        while let Some(Ok(choice)) = choices.next().await {
            choice.cancel();
        }
        let closed = completions.closed();
        tokio::time::timeout(Duration::from_secs(60), closed).await
    });
    adding.join().unwrap();
    assert!(closed.is_ok());
}
