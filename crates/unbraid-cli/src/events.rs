//! `unbraid events`: one JSON object a line, as it happens.

use std::{
    collections::BTreeMap,
    io::{self, BufWriter, Write},
    sync::Arc,
};

use serde_json::{Map, Value, json};
use unbraid_core::{ChoiceIndex, Demux, Event, Options, Transcript};

use crate::{
    exit::{self, Failure, Status},
    input::Source,
    read::{self, Listener},
};

pub(crate) fn run(source: &Source, options: Options) -> Result<Status, Failure> {
    let mut input = exit::open(source)?;
    let mut printer = Printer {
        out: BufWriter::new(io::stdout().lock()),
        ending: None,
    };
    let reading = match source {
        Source::File(_) => read::read(&mut *input, options, &mut printer),
        Source::Stdin => read::read_live(input, options, &mut printer),
    };
    let reading = reading.map_err(Failure::Output)?;
    Ok(exit::tell(source, &reading.outcome()))
}

/// Prints events as JSON lines.
struct Printer<W: Write> {
    out: W,
    /// The choice that is ending, and its calls: the `done` of all of them come in a row.
    ending: Option<(ChoiceIndex, Calls)>,
}

/// Calls by their ordinal.
type Calls = BTreeMap<u32, Call>;

/// A call as its events add up.
#[derive(Default)]
struct Call {
    id: Option<Arc<str>>,
    name: Arc<str>,
    arguments: String,
}

/// Whose sum stands beside an event, so that nobody has to add up deltas.
enum Sum {
    Content,
    Call(u32),
}

impl<W: Write> Listener for Printer<W> {
    fn fed(&mut self, demux: &mut Demux) -> io::Result<()> {
        while let Some(stamped) = demux.next_event() {
            let sum = match &stamped.event {
                Event::ContentDone => Some(Sum::Content),
                Event::ToolCallDone { call, .. } => Some(Sum::Call(*call)),
                _ => None,
            };
            let (choice, mut object) = (stamped.choice, stamped.to_json());
            if let (Some(sum), Some(choice), Value::Object(fields)) = (sum, choice, &mut object) {
                self.add(sum, choice, demux, fields);
            }
            serde_json::to_writer(&mut self.out, &object)?;
            self.out.write_all(b"\n")?;
        }
        Ok(())
    }

    fn caught_up(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl<W: Write> Printer<W> {
    fn add(
        &mut self,
        sum: Sum,
        choice: ChoiceIndex,
        demux: &Demux,
        fields: &mut Map<String, Value>,
    ) {
        let Some(transcript) = demux.choice(choice) else {
            return;
        };
        match sum {
            Sum::Content => {
                fields.insert("content".into(), content(transcript).into());
            }
            Sum::Call(number) => {
                let known = self.ending.take().filter(|(ending, _)| *ending == choice);
                let (_, calls) = self
                    .ending
                    .insert(known.unwrap_or_else(|| (choice, calls(transcript))));
                let call = calls.remove(&number).unwrap_or_default();
                fields.insert("id".into(), json!(call.id.as_deref()));
                fields.insert("name".into(), json!(*call.name));
                fields.insert("arguments".into(), call.arguments.into());
            }
        }
    }
}

fn events(transcript: &Transcript) -> impl Iterator<Item = Event<&str>> {
    (0..transcript.visible()).filter_map(|seq| Some(transcript.event(seq)?.event))
}

/// The deltas joined, which is less than the message's text where more came behind the choice's end (F6).
fn content(transcript: &Transcript) -> String {
    events(transcript)
        .filter_map(|event| match event {
            Event::Content(delta) => Some(delta),
            _ => None,
        })
        .collect()
}

fn calls(transcript: &Transcript) -> Calls {
    let mut calls = Calls::new();
    for event in events(transcript) {
        match event {
            Event::ToolCallStart { call, id, name, .. } => {
                let call = calls.entry(call).or_default();
                call.id = id.map(Arc::from);
                call.name = name.into();
            }
            Event::ToolCallArguments { call, text } => {
                calls.entry(call).or_default().arguments.push_str(text);
            }
            _ => {}
        }
    }
    // An id may have come behind the start (T12). The message lacks a legacy call that repeats another one (T37), and
    // then its calls cannot be told by their number.
    let known = transcript.message().tool_calls;
    if known.len() == calls.len() {
        for (call, known) in calls.values_mut().zip(known) {
            call.id = known.id;
            call.name = known.name;
        }
    }
    calls
}
