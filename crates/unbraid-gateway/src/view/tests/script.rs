//! A log that a test writes, and readers of its views.

use std::{
    sync::Arc,
    task::{Context, Poll, Waker},
};

use unbraid_core::ChoiceIndex;
use unbraid_log::{End, Event, Journal, LogError, Meta, RecordBuilder, Seq, StreamEnd};

use crate::{
    decoding::Decoding,
    view::{Opened, Part, Start, StreamView, Target, ViewReader, ViewRequest},
};

pub(super) struct Script {
    pub(super) view: Arc<StreamView>,
    builder: RecordBuilder,
}

impl Script {
    /// A stream of a request for `n` choices.
    pub(super) fn new(n: u32) -> Self {
        Self::of(Meta::new("/v1/chat/completions", 7).with_n(n))
    }

    pub(super) fn of(meta: Meta) -> Self {
        Self::decoded_by(&Decoding::default(), meta)
    }

    pub(super) fn decoded_by(decoding: &Decoding, meta: Meta) -> Self {
        Self {
            view: StreamView::new(Journal::new(), Arc::new(meta), decoding.clone()),
            builder: RecordBuilder::new(Seq(1)),
        }
    }

    /// Appends an event in a record of its own.
    pub(super) fn push(&mut self, event: &Event<'_>) -> Seq {
        let seq = self.builder.push(event);
        while let Some(record) = self.builder.take() {
            self.view
                .journal()
                .append(&record)
                .expect("the log is open");
        }
        seq
    }

    /// An event of the upstream that concerns these choices.
    pub(super) fn chunk(&mut self, choices: &[u32], payload: &str) -> Seq {
        let choices: Vec<ChoiceIndex> = choices.iter().copied().map(ChoiceIndex).collect();
        self.push(&Event::chunk(&choices, payload.as_bytes()))
    }

    /// A delta of text.
    pub(super) fn text(&mut self, choice: u32, text: &str) -> Seq {
        let payload = format!(
            r#"{{"id":"c","choices":[{{"index":{choice},"delta":{{"content":"{text}"}}}}]}}"#
        );
        self.chunk(&[choice], &payload)
    }

    pub(super) fn choice_end(&mut self, choice: u32, end: End) -> Seq {
        self.push(&Event::ChoiceEnd {
            choice: ChoiceIndex(choice),
            end,
            finish_reason: (end == End::Finished).then_some("stop"),
        })
    }

    pub(super) fn synthetic(&mut self, choice: u32, payload: &str) -> Seq {
        self.push(&Event::Synthetic {
            choices: (&[ChoiceIndex(choice)][..]).into(),
            payload: payload.as_bytes(),
        })
    }

    pub(super) fn error(&mut self, name: Option<&str>, payload: &str) -> Seq {
        self.push(&Event::Error {
            name,
            payload: payload.as_bytes(),
        })
    }

    /// Ends the stream. How its choices have ended is known at once.
    pub(super) fn seal(&self, end: End) {
        self.lose(end);
        self.view.decode_ends();
    }

    /// Ends the stream, whose choices have yet to be decoded if the log does not have their ends.
    pub(super) fn lose(&self, end: End) {
        assert!(self.view.journal().seal(StreamEnd::new(end)));
    }

    pub(super) fn open(&self, target: Target, start: Start) -> Opened {
        let request = ViewRequest {
            start,
            target,
            ..ViewRequest::of_post(None)
        };
        self.view.open(&request).expect("the view exists")
    }

    pub(super) fn reader(&self, target: Target, start: Start) -> ViewReader {
        match self.open(target, start) {
            Opened::Events(reader) => reader,
            Opened::Complete => panic!("204"),
        }
    }

    /// Everything that a view has, and whether it has ended.
    pub(super) fn read(&self, target: Target, start: Start) -> (String, bool) {
        drain(&mut self.reader(target, start))
    }

    #[track_caller]
    pub(super) fn check(&self, target: Target, start: Start, expected: &str) {
        let (text, has_ended) = self.read(target, start);
        let mark = if has_ended { "" } else { ".." };
        assert_eq!(text + mark, expected);
    }
}

/// Three deltas of two choices.
pub(super) fn two_choices() -> Script {
    let mut script = Script::new(2);
    script.text(0, "a");
    script.text(1, "b");
    script.text(0, "c");
    script
}

/// The lines of such a delta in a view.
pub(super) fn data(index: u32, text: &str) -> String {
    format!(
        "data: {{\"id\":\"c\",\"choices\":[{{\"index\":{index},\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n"
    )
}

/// Everything that is ready, and whether the view has ended.
pub(super) fn drain(reader: &mut ViewReader) -> (String, bool) {
    let mut text = String::new();
    loop {
        match frame(reader) {
            Poll::Ready(Some(Ok(frame))) => {
                assert!(!frame.is_empty(), "an empty frame");
                text.push_str(&frame);
            }
            Poll::Ready(Some(Err(error))) => panic!("{error}"),
            Poll::Ready(None) => return (text, true),
            Poll::Pending => return (text, false),
        }
    }
}

/// The next frame.
pub(super) fn frame(reader: &mut ViewReader) -> Poll<Option<Result<String, LogError>>> {
    let mut cx = Context::from_waker(Waker::noop());
    reader.poll_frame(&mut cx).map(|frame| {
        frame.map(|frame| frame.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    })
}

/// One choice, as index 0.
pub(super) fn choice(index: u32) -> Target {
    Target::Choice {
        index: ChoiceIndex(index),
        keep_index: false,
        part: None,
    }
}

pub(super) fn kept(index: u32) -> Target {
    Target::Choice {
        index: ChoiceIndex(index),
        keep_index: true,
        part: None,
    }
}

pub(super) fn part(index: u32, part: Part) -> Target {
    Target::Choice {
        index: ChoiceIndex(index),
        keep_index: false,
        part: Some(part),
    }
}
