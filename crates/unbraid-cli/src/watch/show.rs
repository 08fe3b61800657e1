//! Shows a completion: a task a choice cuts its events into lines, and one writer prints them as they come.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use tokio::{
    sync::mpsc::{self, Sender},
    task::JoinSet,
};
use unbraid::{Call, CallStatus, Choice, ChoiceError, ChoiceIndex, Completions, Event, Finished};

use super::{
    lines::{Line, Lines, Voice},
    summary::{Ended, Shown},
};
use crate::printable::{printable, printable_line};

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
    let shown = Shown {
        closed: completions.closed().await,
        usage: completions.usage().await,
        warnings: completions.warnings(),
        choices: ended(&seen).await,
    };
    shown.summarize(out)?;
    out.flush()?;
    Ok(shown)
}

/// Sends the lines of one choice. It stops early if nobody prints them any more.
async fn follow(choice: Choice, sender: Sender<(ChoiceIndex, Line)>) {
    let mut lines = Lines::default();
    let mut events = choice.events();
    // An error follows the event `End` only, and the summary tells it.
    while let Some(Ok(stamped)) = events.next().await {
        let complete = match &stamped.event {
            Event::Content(text) => lines.push(Voice::Content, text),
            Event::Reasoning(text) => lines.push(Voice::Reasoning, text),
            Event::Refusal(text) => lines.push(Voice::Refusal, text),
            // A call may be cut or go on until its choice ends, and a repeated one is told only then (T37).
            Event::End(_) => {
                let calls = choice.snapshot().tool_calls;
                lines
                    .end()
                    .into_iter()
                    .chain(calls.iter().map(call))
                    .collect()
            }
            _ => continue,
        };
        for line in complete {
            if sender.send((choice.index(), line)).await.is_err() {
                return;
            }
        }
    }
}

fn call(call: &Call) -> Line {
    let name = if call.name.is_empty() {
        "?"
    } else {
        &call.name
    };
    let mut text = format!("{name} {}", call.arguments);
    match call.status {
        None | Some(CallStatus::Complete | CallStatus::EmptyAsObject) => {}
        Some(status) => text = format!("{text} ({status})"),
    }
    let voice = Voice::Call;
    Line { voice, text }
}

async fn ended(choices: &[Choice]) -> Vec<Ended> {
    let mut all = Vec::new();
    for choice in choices {
        let ended = |finished: &Finished| Ended {
            index: finished.index,
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
        Voice::Call => ("> ", printable(&line.text)),
    };
    let style = match line.voice {
        Voice::Content => style(choice),
        Voice::Reasoning => style(choice).dimmed(),
        Voice::Refusal | Voice::Call => style(choice).bold(),
    };
    writeln!(out, "{style}[{choice}] {mark}{text}{style:#}")
}

/// The colour of a choice, told apart from that of its neighbours on dark and light ground alike.
pub(super) fn style(choice: ChoiceIndex) -> Style {
    let color = match choice.0 % 6 {
        0 => AnsiColor::Cyan,
        1 => AnsiColor::Green,
        2 => AnsiColor::Magenta,
        3 => AnsiColor::Yellow,
        4 => AnsiColor::Blue,
        _ => AnsiColor::Red,
    };
    color.on_default()
}
