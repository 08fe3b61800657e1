//! The synchronous core, every event looked at as it comes.

use futures::StreamExt;
use unbraid_core::{Demux, Event, Options};

use crate::{
    body::Answer,
    feed::{Feed, Tally},
};

pub(super) async fn run(mut feed: Feed, tally: Tally) -> Answer {
    let mut demux = Demux::new(Options::default());
    let mut answer = Answer::default();
    while let Some(Ok(read)) = feed.next().await {
        demux.feed(&read);
        take(&mut demux, &mut answer, &tally);
    }
    demux.finish();
    take(&mut demux, &mut answer, &tally);
    answer
}

fn take(demux: &mut Demux, answer: &mut Answer, tally: &Tally) {
    while let Some(stamped) = demux.next_event() {
        let Some(choice) = stamped.choice.map(|choice| choice.0 as usize) else {
            continue;
        };
        if answer.texts.len() <= choice {
            answer.texts.resize(choice + 1, String::new());
            answer.arguments.resize(choice + 1, String::new());
        }
        let (kept, text) = match stamped.event {
            Event::Content(text) => (answer.texts.get_mut(choice), text),
            Event::ToolCallArguments { text, .. } => (answer.arguments.get_mut(choice), text),
            _ => continue,
        };
        if let Some(kept) = kept {
            tally.take(text, kept);
            answer.items += 1;
        }
    }
}
