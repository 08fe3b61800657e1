//! What several of the tests need: a fixture's options, and the trace of a stream.

use unbraid_core::{Config, Demux, Event, Sequenced, Text, ThinkTags};
use unbraid_testkit::fixture::{self, Fixture, SplitThink};

/// The options that a fixture names, for the library.
pub(crate) fn options(told: &fixture::Options) -> Config {
    let default = Config::default();
    let keys = told.reasoning_keys.as_ref();
    Config::default()
        .with_strict(told.strict)
        .with_expect_choices(told.expect_choices)
        .with_think_tags(match told.split_think {
            SplitThink::Never => ThinkTags::Off,
            SplitThink::AtTag => ThinkTags::Split,
            SplitThink::AtStart => ThinkTags::SplitOpen,
        })
        .with_usage_after_done(told.usage_after_done)
        .with_reasoning_keys(keys.map_or(default.reasoning_keys, |keys| {
            keys.iter().map(|key| key.as_str().into()).collect()
        }))
}

/// A whole stream, read in these pieces, as it stands at its end.
pub(crate) fn demux<'p>(
    pieces: impl IntoIterator<Item = &'p [u8]>,
    options: Config,
) -> (Demux, Vec<Sequenced<Text>>) {
    let mut demux = Demux::new(options);
    let mut events = Vec::new();
    for piece in pieces {
        demux.feed(piece);
        take(&mut demux, &mut events);
    }
    demux.finish();
    take(&mut demux, &mut events);
    (demux, events)
}

fn take(demux: &mut Demux, events: &mut Vec<Sequenced<Text>>) {
    while let Some(event) = demux.next_event() {
        events.push(event.map(Text::from));
    }
}

/// The trace of a fixture: one line an event, in `Demux`'s order.
pub(crate) fn trace(fixture: &Fixture) -> Vec<String> {
    let (_, events) = demux([fixture.bytes.as_slice()], options(&fixture.options));
    lines(&events)
}

pub(crate) fn lines<T: AsRef<str>>(events: &[Sequenced<T>]) -> Vec<String> {
    events.iter().map(ToString::to_string).collect()
}

/// Whether two events are the same, without printing them where that can be told.
pub(crate) fn same<T: AsRef<str>, U: AsRef<str>>(
    left: &Sequenced<T>,
    right: &Sequenced<U>,
) -> bool {
    left.choice == right.choice
        && left.seq == right.seq
        && left.position == right.position
        && same_event(&left.event, &right.event)
}

fn same_event<T: AsRef<str>, U: AsRef<str>>(left: &Event<T>, right: &Event<U>) -> bool {
    match (left, right) {
        (Event::Content(l), Event::Content(r))
        | (Event::Reasoning(l), Event::Reasoning(r))
        | (Event::Refusal(l), Event::Refusal(r))
        | (Event::Logprobs(l), Event::Logprobs(r))
        | (Event::ExtraFields(l), Event::ExtraFields(r))
        | (Event::Finish(l), Event::Finish(r)) => l.as_ref() == r.as_ref(),
        (Event::Warning(l), Event::Warning(r)) => l == r,
        _ => bare(left) == bare(right),
    }
}

/// An event without its stamp, as its trace line has it.
pub(crate) fn bare<T: AsRef<str>>(event: &Event<T>) -> String {
    let event = Sequenced::new(None, 0, unbraid_core::Position::default(), copy(event));
    event.to_string()
}

fn copy<T: AsRef<str>>(event: &Event<T>) -> Event<Text> {
    let text = |text: &T| Text::from(text.as_ref());
    match event {
        Event::Start { role } => Event::Start {
            role: role.as_ref().map(text),
        },
        Event::Role(role) => Event::Role(text(role)),
        Event::Content(piece) => Event::Content(text(piece)),
        Event::ContentDone => Event::ContentDone,
        Event::Reasoning(piece) => Event::Reasoning(text(piece)),
        Event::ReasoningDone => Event::ReasoningDone,
        Event::Refusal(piece) => Event::Refusal(text(piece)),
        Event::RefusalDone => Event::RefusalDone,
        Event::ToolCallStart {
            call_index: call,
            wire_index: index,
            id,
            name,
            kind,
        } => Event::ToolCallStart {
            call_index: *call,
            wire_index: *index,
            id: id.as_ref().map(text),
            name: text(name),
            kind: *kind,
        },
        Event::ToolCallArguments {
            call_index: call,
            text: piece,
        } => Event::ToolCallArguments {
            call_index: *call,
            text: text(piece),
        },
        Event::ToolCallDone {
            call_index: call,
            status,
        } => Event::ToolCallDone {
            call_index: *call,
            status: *status,
        },
        Event::Audio(raw) => Event::Audio(text(raw)),
        Event::Logprobs(raw) => Event::Logprobs(text(raw)),
        Event::ExtraFields(raw) => Event::ExtraFields(text(raw)),
        Event::Finish(reason) => Event::Finish(text(reason)),
        Event::Warning(warning) => Event::Warning(warning.clone()),
        Event::End(end) => Event::End(end.clone()),
        Event::Usage(usage) => Event::Usage(usage.clone()),
        Event::Error(error) => Event::Error(error.clone()),
        _ => unreachable!("every event of the library stands above"),
    }
}

/// The pieces between cuts at `first`, `first + step`, and so on.
pub(crate) fn strided(bytes: &[u8], first: usize, step: usize) -> impl Iterator<Item = &[u8]> {
    let (head, rest) = bytes.split_at(first.min(bytes.len()));
    std::iter::once(head).chain(rest.chunks(step))
}
