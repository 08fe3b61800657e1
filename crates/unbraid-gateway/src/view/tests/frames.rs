//! How events become frames: long events, large records, and readers that share them.

use std::task::Poll;

use unbraid_core::ChoiceIndex;
use unbraid_log::{End, Event, LogError, Seq};

use super::script::{Script, choice, data, drain, frame, two_choices};
use crate::view::{Start, Target};

#[test]
fn an_event_of_several_parts_is_one_event_with_the_number_of_its_last_part() {
    let mut script = Script::new(1);
    script.text(0, "a");
    let long = "x".repeat(1_300_000);
    assert_eq!(script.text(0, &long), Seq(4));
    script.text(0, "b");
    let expected = format!(
        "retry: 1000\nid: 4\n{}id: 5\n{}..",
        data(0, &long),
        data(0, "b")
    );
    // A cursor between the parts gets the complete event.
    for after in 1..=3 {
        for target in [Target::Combined, choice(0)] {
            script.check(target, Start::After(Seq(after)), &expected);
        }
    }
    assert!(
        script
            .view
            .json(Target::Combined, true)
            .unwrap()
            .contains(&long)
    );
}

#[test]
fn a_reader_between_the_parts_of_a_live_event_gets_it_complete() {
    let mut script = Script::new(1);
    let payload = r#"{"choices":[{"index":0,"delta":{"content":"ab"}}]}"#;
    let (first, rest) = payload.split_at(20);
    script.push(&Event::Part {
        payload: first.as_bytes(),
    });
    let mut readers: Vec<_> = [Start::Beginning, Start::After(Seq(1)), Start::Tail]
        .into_iter()
        .map(|start| script.reader(Target::Combined, start))
        .collect();
    script.push(&Event::chunk(&[ChoiceIndex(0)], rest.as_bytes()));
    for reader in &mut readers {
        let (text, _) = drain(reader);
        assert!(
            text.ends_with(&format!("id: 2\ndata: {payload}\n\n")),
            "{text}"
        );
    }
}

#[test]
fn one_frame_holds_everything_that_is_ready_and_has_about_64_kib() {
    let mut script = Script::new(1);
    let text = "x".repeat(1000);
    for _ in 0..200 {
        script.text(0, &text);
    }
    script.seal(End::Finished);
    let mut reader = script.reader(Target::Combined, Start::Beginning);
    let mut lengths = Vec::new();
    while let Poll::Ready(Some(Ok(frame))) = frame(&mut reader) {
        lengths.push(frame.len());
    }
    assert!(
        lengths.iter().all(|length| *length < 66 * 1024),
        "{lengths:?}"
    );
    assert!(lengths.len() <= 5, "{lengths:?}");
}

#[test]
fn a_large_record_is_divided_into_frames() {
    let mut builder = unbraid_log::RecordBuilder::new(Seq(1));
    let text = format!(
        r#"{{"choices":[{{"index":0,"delta":{{"content":"{}"}}}}]}}"#,
        "x".repeat(1000)
    );
    for _ in 0..400 {
        builder.push(&Event::chunk(&[ChoiceIndex(0)], text.as_bytes()));
    }
    let script = Script::new(1);
    script
        .view
        .journal()
        .append(&builder.take().unwrap())
        .unwrap();
    for target in [Target::Combined, choice(0)] {
        let mut reader = script.reader(target, Start::Beginning);
        let mut lengths = Vec::new();
        while let Poll::Ready(Some(Ok(frame))) = frame(&mut reader) {
            lengths.push(frame.len());
        }
        assert!(
            lengths.iter().all(|length| *length < 66 * 1024),
            "{lengths:?}"
        );
        assert_eq!(reader.cursor(), Seq(400));
    }
}

#[test]
fn a_long_event_is_divided_into_writes() {
    let mut script = Script::new(1);
    let text = "x".repeat(1_000_000);
    script.text(0, &text);
    script.choice_end(0, End::Finished);
    script.seal(End::Finished);
    for target in [Target::Combined, choice(0)] {
        let mut reader = script.reader(target, Start::Beginning);
        let mut whole = String::new();
        let mut divided = 0;
        while let Poll::Ready(Some(Ok(part))) = frame(&mut reader) {
            assert!(part.len() <= 2 * 64 * 1024);
            whole += &part;
            divided += u32::from(!whole.ends_with("\n\n"));
        }
        assert!(divided > 10 && whole.contains(&text));
        assert!(whole.ends_with("data: [DONE]\n\n"));
    }
}

#[test]
fn readers_at_the_same_position_share_one_frame() {
    let mut script = Script::new(1);
    let mut readers: Vec<_> = (0..64)
        .map(|_| script.reader(choice(0), Start::Beginning))
        .collect();
    script.text(0, "a");
    for reader in &mut readers {
        drain(reader);
    }
    script.text(0, "b");
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    let frames: Vec<_> = readers
        .iter_mut()
        .map(|reader| match reader.poll_frame(&mut cx) {
            Poll::Ready(Some(Ok(frame))) => frame,
            other => panic!("{other:?}"),
        })
        .collect();
    assert!(
        frames
            .iter()
            .all(|frame| frame.as_ptr() == frames[0].as_ptr())
    );
    assert!(readers.iter().all(|reader| reader.cursor() == Seq(2)));
}

#[test]
fn a_failed_log_ends_the_view_with_an_error_and_no_event() {
    let script = two_choices();
    let mut reader = script.reader(Target::Combined, Start::After(Seq(3)));
    assert!(frame(&mut reader).is_pending());
    script.view.journal().fail(LogError::Expired);
    assert_eq!(
        frame(&mut reader),
        Poll::Ready(Some(Err(LogError::Expired)))
    );
    assert_eq!(frame(&mut reader), Poll::Ready(None));
}

#[test]
fn an_id_adds_at_most_12_bytes_to_an_event() {
    let mut frame = crate::view::frame::Frame::new(false);
    frame.event(Seq(9_999_999), None, b"{}");
    assert!(frame.len() - b"data: {}\n\n".len() <= 12);
}

#[test]
fn a_long_stream_without_events_of_a_view_is_read_in_several_polls() {
    struct Woken(std::sync::atomic::AtomicUsize);

    impl std::task::Wake for Woken {
        fn wake(self: std::sync::Arc<Self>) {
            self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
    }

    let mut script = Script::new(2);
    let long = "x".repeat(64 * 1024);
    for _ in 0..100 {
        script.text(0, &long);
    }
    script.text(1, "b");
    let mut reader = script.reader(choice(1), Start::Beginning);
    let woken = std::sync::Arc::new(Woken(0.into()));
    let waker = std::task::Waker::from(std::sync::Arc::clone(&woken));
    let mut cx = std::task::Context::from_waker(&waker);
    let mut polls = 0;
    let frame = loop {
        match reader.poll_frame(&mut cx) {
            Poll::Pending => polls += 1,
            Poll::Ready(frame) => break frame.unwrap().unwrap(),
        }
        let woken = woken.0.load(std::sync::atomic::Ordering::Relaxed);
        assert_eq!(
            woken, polls,
            "a reader that has more to read is polled again"
        );
    };
    assert!((4..=8).contains(&polls), "{polls}");
    assert!(frame.ends_with(data(0, "b").as_bytes()));
}
