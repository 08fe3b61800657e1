//! Events that a caller does not take.

use crate::{ChoiceIndex, Config, Demux, Event};

#[test]
fn skipped_events_are_not_returned_and_later_ones_are() {
    let chunk = |text: &str| {
        format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n")
    };
    let mut demux = Demux::new(Config::default());
    demux.feed(chunk("a").as_bytes());
    assert!(demux.next_event().is_some(), "the start of the choice");
    demux.skip_events();
    assert!(demux.next_event().is_none());
    demux.feed(chunk("b").as_bytes());
    let next = demux.next_event().unwrap();
    assert_eq!((next.seq, next.event), (2, Event::Content("b")));
    assert_eq!(
        demux.choice(ChoiceIndex(0)).unwrap().message().content,
        "ab"
    );
}
