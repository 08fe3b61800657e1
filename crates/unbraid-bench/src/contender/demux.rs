//! The synchronous core. Every event is read immediately.

use unbraid_core::{Config, Demux, Event};

use crate::{
    body::Answer,
    feed::{Feed, Tally},
};

pub(super) async fn run(mut feed: Feed, tally: Tally) -> Answer {
    let mut demux = Demux::new(Config::default());
    let mut answer = Answer::default();
    loop {
        let idle = |_: &Feed| read_events(&mut demux, &mut answer, &tally);
        let Some(read) = feed.read(idle).await else {
            break;
        };
        demux.feed(&read);
    }
    demux.finish();
    read_events(&mut demux, &mut answer, &tally);
    answer
}

fn read_events(demux: &mut Demux, answer: &mut Answer, tally: &Tally) {
    while let Some(record) = &demux.next_event() {
        let (text, is_arguments) = match record.event {
            Event::Content(text) => (text, false),
            Event::ToolCallArguments { text, .. } => (text, true),
            _ => continue,
        };
        answer.items += 1;
        if tally.keeps() {
            answer.keep(record.choice, is_arguments, text);
        }
        tally.observe(text);
    }
}
