//! Shared by several tests: the options of a fixture, and the trace of a stream.

use unbraid_core::{Config, Demux, Event, Sequenced, Text, ThinkTags};
use unbraid_testkit::fixture::{self, Fixture, SplitThink};

/// The library's configuration for the options of a fixture.
pub(crate) fn options(options: &fixture::Options) -> Config {
    let default = Config::default();
    let keys = options.reasoning_keys.as_ref();
    Config::default()
        .with_strict(options.strict)
        .with_expect_choices(options.expect_choices)
        .with_think_tags(match options.split_think {
            SplitThink::Never => ThinkTags::Off,
            SplitThink::AtTag => ThinkTags::Split,
            SplitThink::AtStart => ThinkTags::SplitOpen,
        })
        .with_usage_after_done(options.usage_after_done)
        .with_reasoning_keys(keys.map_or(default.reasoning_keys, |keys| {
            keys.iter().map(|key| key.as_str().into()).collect()
        }))
}

/// The `Demux` and the events of a stream, read in these reads to its end.
pub(crate) fn demux<'p>(
    reads: impl IntoIterator<Item = &'p [u8]>,
    config: Config,
) -> (Demux, Vec<Sequenced<Text>>) {
    let mut demux = Demux::new(config);
    let mut events = Vec::new();
    for read in reads {
        demux.feed(read);
        drain(&mut demux, &mut events);
    }
    demux.finish();
    drain(&mut demux, &mut events);
    (demux, events)
}

fn drain(demux: &mut Demux, events: &mut Vec<Sequenced<Text>>) {
    while let Some(event) = demux.next_event() {
        events.push(event.map(Text::from));
    }
}

/// The trace of a fixture: one line per event, in the order of `Demux`.
pub(crate) fn trace(fixture: &Fixture) -> Vec<String> {
    let (_, events) = demux([fixture.bytes.as_slice()], options(&fixture.options));
    lines(&events)
}

pub(crate) fn lines<T: AsRef<str>>(events: &[Sequenced<T>]) -> Vec<String> {
    events.iter().map(ToString::to_string).collect()
}

/// Whether two events are equal, without formatting them where possible.
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

/// The trace line of an event without its position.
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
        Event::Content(delta) => Event::Content(text(delta)),
        Event::ContentDone => Event::ContentDone,
        Event::Reasoning(delta) => Event::Reasoning(text(delta)),
        Event::ReasoningDone => Event::ReasoningDone,
        Event::Refusal(delta) => Event::Refusal(text(delta)),
        Event::RefusalDone => Event::RefusalDone,
        Event::ToolCallStart {
            call_index,
            wire_index,
            id,
            name,
            kind,
        } => Event::ToolCallStart {
            call_index: *call_index,
            wire_index: *wire_index,
            id: id.as_ref().map(text),
            name: text(name),
            kind: *kind,
        },
        Event::ToolCallArguments {
            call_index,
            text: fragment,
        } => Event::ToolCallArguments {
            call_index: *call_index,
            text: text(fragment),
        },
        Event::ToolCallDone { call_index, status } => Event::ToolCallDone {
            call_index: *call_index,
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
        _ => unreachable!("all events of the library are listed above"),
    }
}

/// The reads between cuts at `first`, `first + step`, and so on.
pub(crate) fn strided(bytes: &[u8], first: usize, step: usize) -> impl Iterator<Item = &[u8]> {
    let (head, rest) = bytes.split_at(first.min(bytes.len()));
    std::iter::once(head).chain(rest.chunks(step))
}
