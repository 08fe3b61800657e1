//! The order of the events of all choices, for a consumer that is late or slow.

use futures::TryStreamExt;
use unbraid_testkit::script::{DONE, Script, Step, bytes, content, finish};

use super::soon;
use crate::{AllEvents, ChoiceIndex, Completions, Event, Sequenced};

const USAGE: &str = "data: {\"choices\":[],\"usage\":{\"completion_tokens\":7}}\n\n";

/// Two long choices, of which the second one has a few deltas far behind its start, and a third one that begins late.
fn body() -> String {
    let mut body = String::new();
    for nth in 0..2_000 {
        body += &content(0, "a");
        if nth % 700 == 300 {
            body += &content(1, "b");
        }
        if nth > 1_500 {
            body += &content(2, "c");
        }
    }
    (0..3).for_each(|choice| body += &finish(choice, "stop"));
    body + USAGE + DONE
}

#[track_caller]
fn check_order(events: &[Sequenced]) {
    assert!(events.is_sorted_by_key(Sequenced::sort_key));
    assert!(matches!(events.last().unwrap().event, Event::Usage(_)));
    for choice in 0..3 {
        let of_choice = |event: &&Sequenced| event.choice == Some(ChoiceIndex(choice));
        let numbers: Vec<u64> = events.iter().filter(of_choice).map(|e| e.seq).collect();
        assert!(numbers.iter().copied().eq(0..numbers.len() as u64));
        let last = events.iter().rfind(of_choice).unwrap();
        assert!(matches!(last.event, Event::End(_)));
    }
}

#[tokio::test(start_paused = true)]
async fn a_late_consumer_receives_the_events_of_all_choices_in_their_order() {
    let completions = Completions::from_byte_stream(Script::new([bytes(body())]));
    soon(completions.closed()).await.unwrap();
    let events: Vec<Sequenced> = soon(completions.events().try_collect()).await.unwrap();
    check_order(&events);
}

#[tokio::test(start_paused = true)]
async fn a_consumer_that_stalls_receives_them_in_their_order_too() {
    async fn take(events: &mut AllEvents, count: usize, seen: &mut Vec<Sequenced>) {
        for _ in 0..count {
            seen.push(soon(events.next()).await.unwrap().unwrap());
        }
    }
    let body = body();
    let (first, rest) = body.split_at(body.len() / 2);
    let second = std::time::Duration::from_secs(1);
    let steps = [bytes(first), Step::Pause(second), bytes(rest)];
    let completions = Completions::from_byte_stream(Script::new(steps));
    let mut events = completions.events();
    let mut seen = Vec::new();
    take(&mut events, 700, &mut seen).await;
    soon(completions.closed()).await.unwrap();
    take(&mut events, 1, &mut seen).await;
    // A clone has the same position, and its own.
    let mut clone = events.clone();
    let mut seen_by_clone = seen.clone();
    for (events, seen) in [(&mut events, &mut seen), (&mut clone, &mut seen_by_clone)] {
        while let Some(event) = soon(events.next()).await {
            seen.push(event.unwrap());
        }
        check_order(seen);
    }
}
