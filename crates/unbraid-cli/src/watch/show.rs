//! Shows a completion: a task a choice cuts its events into lines, and one writer prints them as they come.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use tokio::{
    sync::mpsc::{self, Sender},
    task::JoinSet,
};
use unbraid::{Choice, ChoiceError, ChoiceIndex, ChoiceOutcome, Completions, Event};

use super::{
    calls::Calls,
    lines::{Line, Lines, Voice},
    summary::{Ended, Shown},
};
use crate::printable::printable_line;

/// Lines that wait to be printed. What does not fit waits in the completion, which keeps it anyway.
const QUEUE: usize = 64;

/// Prints the choices of a completion as they stream, then how each of them ended. The error is the writer's.
pub(crate) async fn show(completions: &Completions, out: &mut impl Write) -> io::Result<Shown> {
    let mut choices = completions.choices();
    let mut seen = Vec::new();
    let mut followers = JoinSet::new();
    let (sender, mut lines) = mpsc::channel(QUEUE);
    let mut sender = Some(sender);
    let mut batch = Vec::new();
    loop {
        tokio::select! {
            next = choices.next(), if sender.is_some() => match (next, &sender) {
                (Some(Ok(choice)), Some(sender)) => {
                    followers.spawn(follow(choice.clone(), sender.clone()));
                    seen.push(choice);
                }
                // An error is told when the stream has closed. The lines end with the last follower.
                _ => sender = None,
            },
            received = lines.recv_many(&mut batch, QUEUE) => {
                if received == 0 {
                    break;
                }
                for (choice, line) in batch.drain(..) {
                    print(out, choice, &line)?;
                }
                out.flush()?;
            }
        }
    }
    conclude(completions, &seen, out).await
}

/// Prints a completion that is over: its choices one behind the other, then how each of them ended.
pub(crate) async fn recount(completions: &Completions, out: &mut impl Write) -> io::Result<Shown> {
    let mut choices = completions.choices();
    let mut seen = Vec::new();
    while let Some(Ok(choice)) = choices.next().await {
        seen.push(choice);
    }
    seen.sort_by_key(Choice::index);
    for choice in &seen {
        let mut lines = ChoiceLines::default();
        let mut events = choice.events();
        while let Some(Ok(stamped)) = events.next().await {
            for line in lines.push(choice, &stamped.event) {
                print(out, choice.index(), &line)?;
            }
        }
    }
    conclude(completions, &seen, out).await
}

async fn conclude(
    completions: &Completions,
    seen: &[Choice],
    out: &mut impl Write,
) -> io::Result<Shown> {
    let shown = Shown {
        closed: completions.closed().await,
        usage: completions.usage().await,
        warnings: completions.warnings(),
        choices: ended(seen).await,
    };
    shown.summarize(out)?;
    out.flush()?;
    Ok(shown)
}

/// Sends the lines of one choice. It stops early if nobody prints them any more.
async fn follow(choice: Choice, sender: Sender<(ChoiceIndex, Line)>) {
    let mut lines = ChoiceLines::default();
    let mut events = choice.events();
    // An error follows the event `End` only, and the summary tells it.
    while let Some(Ok(stamped)) = events.next().await {
        for line in lines.push(&choice, &stamped.event) {
            if sender.send((choice.index(), line)).await.is_err() {
                return;
            }
        }
    }
}

/// Cuts the events of one choice into lines.
#[derive(Debug, Default)]
struct ChoiceLines {
    text: Lines,
    calls: Calls,
}

impl ChoiceLines {
    /// The lines that are complete with an event.
    fn push(&mut self, choice: &Choice, event: &Event) -> Vec<Line> {
        match event {
            Event::Content(text) => self.say(Voice::Content, text),
            Event::Reasoning(text) => self.say(Voice::Reasoning, text),
            Event::Refusal(text) => self.say(Voice::Refusal, text),
            Event::ToolCallStart { name, kind, .. } => {
                let mut lines = Vec::from_iter(self.text.end());
                lines.extend(self.calls.start(name, *kind));
                lines
            }
            Event::ToolCallArguments {
                call_index: call,
                text,
            } => self.calls.push(*call, text),
            Event::End(_) => {
                let text = self.text.end();
                self.calls.end(&choice.snapshot().tool_calls, text)
            }
            _ => Vec::new(),
        }
    }

    fn say(&mut self, voice: Voice, text: &str) -> Vec<Line> {
        let mut lines = self.calls.pass();
        lines.extend(self.text.push(voice, text));
        lines
    }
}

async fn ended(choices: &[Choice]) -> Vec<Ended> {
    let mut all = Vec::new();
    for choice in choices {
        let ended = |finished: &ChoiceOutcome| Ended {
            index: finished.choice,
            end: finished.end.clone(),
            calls: finished.message.tool_calls.len(),
            timing: choice.timing(),
        };
        let finished = choice.finished().await;
        all.push(match &finished {
            Ok(finished) => ended(finished),
            Err(error) => ended(ChoiceError::partial(error)),
        });
    }
    all
}

fn print(out: &mut impl Write, choice: ChoiceIndex, line: &Line) -> io::Result<()> {
    let (mark, text) = match line.voice {
        Voice::Content => ("", printable_line(&line.text)),
        Voice::Reasoning => ("~ ", printable_line(&line.text)),
        Voice::Refusal => ("! ", printable_line(&line.text)),
        Voice::Call => ("> ", printable_line(&line.text)),
    };
    let style = match line.voice {
        Voice::Content => style(choice),
        Voice::Reasoning => style(choice).dimmed(),
        Voice::Refusal | Voice::Call => style(choice).bold(),
    };
    writeln!(out, "{style}[{choice}] {mark}{text}{style:#}")
}

pub(super) fn style(choice: ChoiceIndex) -> Style {
    color(choice).on_default()
}

/// The colour of a choice, told apart from that of its neighbours on dark and light ground alike.
pub(crate) fn color(choice: ChoiceIndex) -> AnsiColor {
    match choice.0 % 6 {
        0 => AnsiColor::Cyan,
        1 => AnsiColor::Green,
        2 => AnsiColor::Magenta,
        3 => AnsiColor::Yellow,
        4 => AnsiColor::Blue,
        _ => AnsiColor::Red,
    }
}
