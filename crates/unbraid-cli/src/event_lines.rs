//! Prints events as lines of JSON, as they happen.

mod sums;

use std::io::{self, BufWriter, Write};

use futures::FutureExt;
use serde_json::{Value, json};
use unbraid::Completions;
use unbraid_core::{ChoiceEnd, Demux, Event, Message, Sequenced, StreamError};

use self::sums::{CallDone, Sums};
use crate::{
    input::Listener,
    json::{self, TerminalSafe},
    outcome::no_choice_error,
};

/// Prints the events of a completion until it is over. The error is the writer's.
pub(crate) async fn print(completions: &Completions, out: impl Write) -> io::Result<()> {
    let mut printer = EventPrinter::new(out);
    let mut events = completions.events();
    loop {
        let next = match events.next().now_or_never() {
            Some(next) => next,
            None => {
                printer.flush()?; // the next event may take a long time
                events.next().await
            }
        };
        // The stream's own error has been an event already.
        let Some(Ok(event)) = next else {
            return printer.finish();
        };
        let (line, done) = printer.convert(&event);
        let choice = match done {
            Some((index, _)) => completions.choice(index).await, // ready at once: the choice has events
            None => None,
        };
        printer.print(line, done, || Some(choice?.snapshot()))?;
    }
}

/// Prints one line of JSON.
pub(crate) fn print_value(value: &Value, out: &mut impl Write) -> io::Result<()> {
    let mut out = BufWriter::new(out);
    write_line(&Line::Value(value.clone()), &mut out)?;
    out.flush()
}

/// Prints events as lines of JSON.
pub(crate) struct EventPrinter<W: Write> {
    out: BufWriter<W>,
    sums: Sums,
    /// The number of the next event of the stream itself, until an event shows that the stream holds a choice or has an error.
    next_of_empty: Option<u64>,
}

/// An event as JSON.
enum Line {
    Value(Value),
    Text(String),
}

impl<W: Write> EventPrinter<W> {
    pub(crate) fn new(out: W) -> Self {
        Self {
            out: BufWriter::new(out),
            sums: Sums::default(),
            next_of_empty: Some(0),
        }
    }

    /// Ends the output. A stream without a choice that ended normally has no event that says so.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        if let Some(seq) = self.next_of_empty.take() {
            let error = no_choice_error();
            let line = json!({ "seq": seq, "choice": null, "type": "error", "error": error });
            write_line(&Line::Value(line), &mut self.out)?;
        }
        self.flush()
    }

    /// Converts an event to JSON. The line of a completed call still lacks the sums, which [`print`](Self::print) adds.
    fn convert<T: AsRef<str>>(&mut self, event: &Sequenced<T>) -> (Line, Option<CallDone>) {
        let is_of_empty = event.choice.is_none() && !matches!(event.event, Event::Error(_));
        self.next_of_empty = self
            .next_of_empty
            .filter(|_| is_of_empty)
            .map(|_| event.seq + 1);
        match &event.event {
            // These contain JSON of the server. A `Value` could not keep every digit of its numbers.
            Event::Audio(_)
            | Event::Logprobs(_)
            | Event::ExtraFields(_)
            | Event::Usage(_)
            | Event::Error(StreamError::Server(_)) => (Line::Text(json::text(event)), None),
            Event::End(ChoiceEnd::ServerError(_)) => {
                self.sums.add(event);
                (Line::Text(json::text(event)), None)
            }
            _ => {
                let (value, done) = self.sums.add(event);
                (Line::Value(value), done)
            }
        }
    }

    fn print(
        &mut self,
        mut line: Line,
        done: Option<CallDone>,
        message: impl FnOnce() -> Option<Message>,
    ) -> io::Result<()> {
        if let (Some(done), Line::Value(Value::Object(fields))) = (done, &mut line) {
            self.sums.insert_call(done, message, fields);
        }
        write_line(&line, &mut self.out)
    }
}

impl<W: Write> Listener for EventPrinter<W> {
    fn handle_events(&mut self, demux: &mut Demux) -> io::Result<()> {
        while let Some(event) = demux.next_event() {
            let (line, done) = self.convert(&event);
            let message = || Some(demux.choice(done?.0)?.message());
            self.print(line, done, message)?;
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn write_line(line: &Line, out: &mut impl Write) -> io::Result<()> {
    match line {
        Line::Value(value) => serde_json::to_writer(TerminalSafe(&mut *out), value)?,
        Line::Text(text) => TerminalSafe(&mut *out).write_all(text.as_bytes())?,
    }
    out.write_all(b"\n")
}
