use futures::{FutureExt, StreamExt};
use unbraid_core::ChoiceIndex;

use super::CommandQueue;
use crate::{Command, StreamId};

fn cancel(choice: u32) -> Command {
    Command::Cancel(Some(ChoiceIndex(choice)))
}

fn ids<const N: usize>() -> [StreamId; N] {
    [(); N].map(|()| StreamId::random().unwrap())
}

#[tokio::test]
async fn each_command_reaches_the_receiver_of_its_stream() {
    let queue = CommandQueue::default();
    let [a, b, c] = ids();
    let (mut of_a, mut of_b) = (queue.stream_of(&a), queue.stream_of(&b));
    let mut others = queue.stream();
    for (id, choice) in [(&a, 1), (&c, 2), (&a, 3), (&b, 4)] {
        queue.send(id, cancel(choice)).unwrap();
    }
    // None of them depends on another one being polled.
    assert_eq!(others.next().now_or_never(), Some(Some((c, cancel(2)))));
    assert_eq!(others.next().now_or_never(), None);
    assert_eq!(of_b.next().now_or_never(), Some(Some(cancel(4))));
    assert_eq!(of_a.next().now_or_never(), Some(Some(cancel(1))));
    assert_eq!(of_a.next().now_or_never(), Some(Some(cancel(3))));
    assert_eq!(of_a.next().now_or_never(), None);
}

#[tokio::test]
async fn a_receiver_gets_what_waits_for_it() {
    let queue = CommandQueue::default();
    let [a, b] = ids();
    for (id, choice) in [(&a, 1), (&b, 2), (&a, 3)] {
        queue.send(id, cancel(choice)).unwrap();
    }
    let mut of_a = queue.stream_of(&a);
    assert_eq!(of_a.next().await, Some(cancel(1)));
    assert_eq!(of_a.next().await, Some(cancel(3)));
    assert_eq!(queue.stream().next().await, Some((b, cancel(2))));
}

#[tokio::test]
async fn commands_are_those_of_all_again_once_their_receiver_is_dropped() {
    let queue = CommandQueue::default();
    let [a] = ids();
    let (first, mut second) = (queue.stream_of(&a), queue.stream_of(&a));
    // The second one has taken the place of the first one, and keeps it.
    drop(first);
    queue.send(&a, cancel(1)).unwrap();
    assert_eq!(second.next().await, Some(cancel(1)));
    drop(second);
    queue.send(&a, cancel(2)).unwrap();
    assert_eq!(queue.stream().next().await, Some((a, cancel(2))));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn receivers_in_several_tasks_lose_nothing_and_keep_the_order() {
    const COUNT: u32 = 500;
    let queue = CommandQueue::new(COUNT as usize);
    let [a, b, c, other] = ids();
    let sender = queue.sender();
    // They share what is for others: one of them is never polled.
    let _idle = queue.stream();
    let mut others = [queue.stream(), queue.stream()].map(Some);
    let taken = others.each_mut().map(|others| {
        let others = others.take().unwrap().take(COUNT as usize / 2);
        tokio::spawn(others.collect::<Vec<_>>())
    });
    let own = [&a, &b, &c].map(|id| {
        let own = queue.stream_of(id).take(COUNT as usize);
        tokio::spawn(own.collect::<Vec<_>>())
    });
    for choice in 0..COUNT {
        for id in [&a, &b, &c, &other] {
            sender.send((id.clone(), cancel(choice))).await.unwrap();
            tokio::task::yield_now().await;
        }
    }
    for own in own {
        assert_eq!(
            own.await.unwrap(),
            (0..COUNT).map(cancel).collect::<Vec<_>>()
        );
    }
    let mut all = Vec::new();
    for taken in taken {
        all.extend(taken.await.unwrap().into_iter().map(|(id, command)| {
            assert_eq!(id, other);
            let Command::Cancel(Some(choice)) = command else {
                panic!("{command:?}");
            };
            choice.0
        }));
    }
    all.sort_unstable();
    assert_eq!(all, (0..COUNT).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_full_queue_holds_back_its_sender_while_somebody_listens() {
    let queue = CommandQueue::new(2);
    let [a, b] = ids();
    let mut others = queue.stream();
    let sender = queue.sender();
    for choice in 0..2 {
        sender.try_send((a.clone(), cancel(choice))).unwrap();
    }
    assert!(queue.send(&a, cancel(2)).is_err());
    let mut waiting = Box::pin(sender.send((a.clone(), cancel(2))));
    assert!(waiting.as_mut().now_or_never().is_none());
    // That of another stream passes it.
    let mut of_b = queue.stream_of(&b);
    sender.send((b, cancel(7))).await.unwrap();
    assert_eq!(of_b.next().await, Some(cancel(7)));
    assert_eq!(others.next().await, Some((a.clone(), cancel(0))));
    waiting.await.unwrap();
    for choice in 1..3 {
        assert_eq!(others.next().await, Some((a.clone(), cancel(choice))));
    }
}

#[tokio::test]
async fn commands_that_nobody_takes_are_bounded_and_hold_back_nobody() {
    let queue = CommandQueue::new(4);
    let [a, b] = ids();
    let sender = queue.sender();
    let mut of_a = queue.stream_of(&a);
    for choice in 0..10 {
        sender.send((b.clone(), cancel(choice))).await.unwrap();
        sender.send((a.clone(), cancel(choice))).await.unwrap();
    }
    let first: Vec<_> = (&mut of_a).take(4).collect().await;
    assert_eq!(first, (0..4).map(cancel).collect::<Vec<_>>());
    assert_eq!(of_a.next().now_or_never(), None, "it had left too many");
    let others: Vec<_> = queue.stream().take(4).collect().await;
    assert_eq!(others[0], (b, cancel(6)), "the latest are kept");
}

#[tokio::test]
async fn a_sender_is_closed_with_the_queue_and_its_streams() {
    let queue = CommandQueue::new(1);
    let [a] = ids();
    let (sender, others, of_a) = (queue.sender(), queue.stream(), queue.stream_of(&a));
    drop(queue);
    drop(others);
    assert!(sender.closed().now_or_never().is_none());
    sender.send((a.clone(), cancel(0))).await.unwrap();
    drop(of_a);
    sender.closed().await;
    assert!(sender.send((a, cancel(1))).await.is_err());
}
