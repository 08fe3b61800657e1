//! What handles ask of a reader: heard from the moment at which there is one, and refused once it is gone.

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
    sync::command_queue::CommandQueue,
};

struct Silent;

impl Wake for Silent {
    fn wake(self: Arc<Self>) {}
}

fn poll(control: &ReaderControl) -> Poll<Vec<Command>> {
    control.poll(&Context::from_waker(Waker::noop()), &mut None)
}

#[test]
fn a_request_before_the_reader_has_started_is_heard() {
    let control = ReaderControl::default();
    let cancel = Command::Cancel(ChoiceIndex(3));
    control.send(cancel.clone());
    assert_eq!(poll(&control), Poll::Ready(vec![cancel]));
    assert_eq!(poll(&control), Poll::Pending);
}

#[test]
fn what_is_asked_of_all_readers_is_asked_of_one_that_is_being_started() {
    for request in [
        Command::CancelAll,
        Command::KeepOnly([ChoiceIndex(0)].into()),
    ] {
        let controls = ReaderControls::default();
        let control = controls.add().unwrap();
        controls.send(request.clone());
        assert!(controls.add().is_none(), "it is over");
        assert_eq!(poll(&control), Poll::Ready(vec![request]));
    }
}

#[test]
fn a_reader_that_is_being_started_hears_that_every_handle_is_gone() {
    let controls = Arc::new(ReaderControls::default());
    let control = controls.add().unwrap();
    drop(CancelOnDrop { controls });
    assert_eq!(poll(&control), Poll::Ready(vec![Command::CancelAll]));
}

#[test]
fn a_closed_queue_refuses_requests_and_gives_back_those_that_nobody_read() {
    let requests = CommandQueue::default();
    let silent = Arc::new(Silent);
    let waker = Waker::from(Arc::clone(&silent));
    let mut left = None;
    let polled = requests.poll(&Context::from_waker(&waker), &mut left);
    assert!(polled.is_pending());
    drop((waker, left));
    assert_eq!(Arc::strong_count(&silent), 2);
    assert!(requests.send(1));
    assert_eq!(requests.close(), [1]);
    assert!(!requests.send(2));
    let polled = requests.poll(&Context::from_waker(Waker::noop()), &mut None);
    assert!(polled.is_pending());
    assert_eq!(requests.close(), [0_u8; 0]);

    let requests = CommandQueue::<u8>::default();
    let waker = Waker::from(Arc::clone(&silent));
    let polled = requests.poll(&Context::from_waker(&waker), &mut None);
    assert!(polled.is_pending());
    drop(waker);
    assert_eq!(requests.close(), [0_u8; 0]);
    assert_eq!(Arc::strong_count(&silent), 1, "it keeps no waker");
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_is_done_before_its_start_is_known_is_not_kept() {
    let other = read([Step::Stall]);
    let cell = other.reader().expect("it runs");
    let control = Arc::new(ReaderControl::default());
    control.set_running(cell.clone());
    assert!(control.reader().is_some());
    drop(CommandReceiver::new(&control));
    assert!(control.reader().is_none());
    control.set_running(cell);
    assert!(control.reader().is_none(), "it would pin a dead mailbox");
    control.send(Command::CancelAll);
    assert!(poll(&control).is_pending(), "nobody is left to read it");
}

#[tokio::test(start_paused = true)]
async fn a_killed_reader_refuses_requests() {
    let completions = read([bytes(content(0, "a")), Step::Stall]);
    let choice = soon(completions.choice(0)).await.unwrap();
    completions.reader().expect("it runs").kill();
    assert!(soon(choice.finished()).await.is_err());
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert!(completions.reader().is_none());
    choice.cancel();
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
