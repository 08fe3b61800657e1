//! `unbraid events`: one JSON object a line, as it happens.

use std::{
    collections::BTreeMap,
    io::{self, BufWriter, Write},
    sync::Arc,
};

use futures::FutureExt;
use serde_json::{Map, Value, json};
use unbraid::Completions;
use unbraid_core::{
    CallIndex, ChoiceEnd, ChoiceIndex, Config, Demux, Event, Message, Sequenced, StreamError,
};

use crate::{
    chat::cause,
    exit::{self, Failure, Status},
    input::Source,
    json_text,
    read::{self, Listener},
};

pub(crate) fn run(source: &Source, options: Config) -> Result<Status, Failure> {
    let mut input = exit::open(source)?;
    let mut printer = Printer::new(io::stdout().lock());
    let reading = match source {
        Source::File(_) => read::read(&mut *input, options, &mut printer),
        Source::Stdin => read::read_live(input, options, &mut printer),
    };
    let reading = reading.map_err(Failure::Output)?;
    Ok(exit::tell(source, &reading.outcome()))
}

/// Prints the events of a completion until it is over. The error is the writer's.
pub(crate) async fn print(completions: &Completions, out: impl Write) -> io::Result<()> {
    let mut printer = Printer::new(out);
    let mut events = completions.events();
    loop {
        let next = match events.next().now_or_never() {
            Some(next) => next,
            None => {
                printer.caught_up()?; // the next event may be long in coming
                events.next().await
            }
        };
        // The stream's own error was an event before.
        let Some(Ok(stamped)) = next else {
            return printer.caught_up();
        };
        let (object, done) = printer.add(&stamped);
        let choice = match done {
            Some((index, _)) => completions.choice(index).await, // it is there
            None => None,
        };
        printer.print(object, done, || Some(choice?.snapshot()))?;
    }
}

/// Prints events as JSON lines.
struct Printer<W: Write> {
    out: BufWriter<W>,
    sums: Sums,
}

impl<W: Write> Printer<W> {
    fn new(out: W) -> Self {
        Self {
            out: BufWriter::new(out),
            sums: Sums::default(),
        }
    }

    /// Takes an event, and gives what is printed of it; of a call that is done the sums are still missing.
    fn add<T: AsRef<str>>(&mut self, stamped: &Sequenced<T>) -> (Line, Option<Done>) {
        match &stamped.event {
            // They hold raw JSON, of which a value could not keep every digit.
            Event::Audio(_)
            | Event::Logprobs(_)
            | Event::ExtraFields(_)
            | Event::Usage(_)
            | Event::Error(StreamError::Server(_)) => (Line::Text(json_text::of(stamped)), None),
            Event::End(ChoiceEnd::ServerError(_)) => {
                self.sums.add(stamped);
                (Line::Text(json_text::of(stamped)), None)
            }
            _ => {
                let (object, done) = self.sums.add(stamped);
                (Line::Object(object), done)
            }
        }
    }

    fn print(
        &mut self,
        mut line: Line,
        done: Option<Done>,
        message: impl FnOnce() -> Option<Message>,
    ) -> io::Result<()> {
        if let (Some(done), Line::Object(Value::Object(fields))) = (done, &mut line) {
            self.sums.call(done, message, fields);
        }
        write_line(&line, &mut self.out)
    }
}

/// Prints one line.
pub(crate) fn write(object: &Value, out: &mut impl Write) -> io::Result<()> {
    let mut out = BufWriter::new(out);
    write_line(&Line::Object(object.clone()), &mut out)?;
    out.flush()
}

fn write_line(line: &Line, out: &mut impl Write) -> io::Result<()> {
    match line {
        Line::Object(object) => serde_json::to_writer(json_text::Harmless(&mut *out), object)?,
        Line::Text(text) => json_text::Harmless(&mut *out).write_all(text.as_bytes())?,
    }
    out.write_all(b"\n")
}

/// An event as JSON.
enum Line {
    Object(Value),
    Text(String),
}

impl<W: Write> Listener for Printer<W> {
    fn fed(&mut self, demux: &mut Demux) -> io::Result<()> {
        while let Some(stamped) = demux.next_event() {
            let (object, done) = self.add(&stamped);
            let message = || Some(demux.choice(done?.0)?.message());
            self.print(object, done, message)?;
        }
        Ok(())
    }

    fn caught_up(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// A call that is done: its choice, and its ordinal.
type Done = (ChoiceIndex, CallIndex);

/// What the events of each choice that is open add up to, so that nobody else has to add up deltas.
#[derive(Default)]
struct Sums(BTreeMap<ChoiceIndex, Sum>);

#[derive(Default)]
struct Sum {
    reasoning: String,
    content: String,
    refusal: String,
    /// By their ordinal.
    calls: BTreeMap<CallIndex, Call>,
    /// Whether the calls have what came behind their starts.
    completed: bool,
}

/// A call as its events add up.
#[derive(Default)]
struct Call {
    id: Option<Arc<str>>,
    name: Arc<str>,
    arguments: String,
}

impl Sums {
    /// Takes an event, and gives it as JSON; of a call that is done the sums are still missing.
    fn add<T: AsRef<str>>(&mut self, stamped: &Sequenced<T>) -> (Value, Option<Done>) {
        let mut object = json!(stamped);
        cause::add_to_event(&stamped.event, &mut object);
        let Some(index) = stamped.choice else {
            return (object, None);
        };
        let sum = self.0.entry(index).or_default();
        match &stamped.event {
            Event::Reasoning(delta) => sum.reasoning.push_str(delta.as_ref()),
            Event::Content(delta) => sum.content.push_str(delta.as_ref()),
            Event::Refusal(delta) => sum.refusal.push_str(delta.as_ref()),
            Event::ReasoningDone => insert_text(&mut object, "reasoning", &mut sum.reasoning),
            Event::ContentDone => insert_text(&mut object, "content", &mut sum.content),
            Event::RefusalDone => insert_text(&mut object, "refusal", &mut sum.refusal),
            Event::ToolCallStart {
                call_index: call,
                id,
                name,
                ..
            } => {
                let call = sum.calls.entry(*call).or_default();
                call.id = id.as_ref().map(|id| Arc::from(id.as_ref()));
                call.name = name.as_ref().into();
            }
            Event::ToolCallArguments {
                call_index: call,
                text,
            } => {
                let call = sum.calls.entry(*call).or_default();
                call.arguments.push_str(text.as_ref());
            }
            Event::ToolCallDone {
                call_index: call, ..
            } => return (object, Some((index, *call))),
            Event::End(_) => {
                self.0.remove(&index);
            }
            _ => {}
        }
        (object, None)
    }

    /// Adds the sums of a call that is done.
    fn call(
        &mut self,
        (index, call): Done,
        message: impl FnOnce() -> Option<Message>,
        fields: &mut Map<String, Value>,
    ) {
        let sum = self.0.entry(index).or_default();
        // The `done` of all calls of a choice come in a row.
        if !sum.completed
            && let Some(message) = message()
        {
            sum.complete(message);
        }
        let call = sum.calls.remove(&call).unwrap_or_default();
        fields.insert("id".into(), json!(call.id.as_deref()));
        fields.insert("name".into(), json!(*call.name));
        fields.insert("arguments".into(), call.arguments.into());
    }
}

/// Moves the whole of a text into the event that completes it.
fn insert_text(object: &mut Value, key: &str, text: &mut String) {
    if let Value::Object(fields) = object {
        fields.insert(key.into(), std::mem::take(text).into());
    }
}

impl Sum {
    /// An id may have come behind the start (T12). The message lacks a legacy call that repeats another one (T37), and
    /// then its calls cannot be told by their number.
    fn complete(&mut self, message: Message) {
        self.completed = true;
        if message.tool_calls.len() == self.calls.len() {
            for (call, known) in self.calls.values_mut().zip(message.tool_calls) {
                call.id = known.id;
                call.name = known.name;
            }
        }
    }
}
