//! What a subscriber of `tracing` receives: counts and outcomes, and no payload.

use std::{
    fmt::{Debug, Write},
    sync::{Arc, Mutex},
};

use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};
use unbraid_testkit::script::{DONE, Step, bytes, content, finish};

use super::{outcome, read, soon};

/// Everything that is traced, as `name=value` in one line for each event or span.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

impl Lines {
    fn record(&self, visit: impl FnOnce(&mut Line)) {
        let mut line = Line(String::new());
        visit(&mut line);
        self.0.lock().unwrap().push(line.0);
    }
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, "{}={value:?} ", field.name()).unwrap();
    }
}

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("unbraid")
    }

    fn new_span(&self, span: &span::Attributes<'_>) -> span::Id {
        self.record(|line| span.record(line));
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, values: &span::Record<'_>) {
        self.record(|line| values.record(line));
    }

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        self.record(|line| event.record(line));
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

/// The lines that a stream leaves. Its runtime has one thread, so they are all recorded here.
fn trace(steps: Vec<Step>) -> Vec<String> {
    let lines = Lines::default();
    tracing::subscriber::with_default(lines.clone(), || {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let completions = read(steps);
            let choice = soon(completions.first()).await.unwrap();
            outcome(&choice).await;
            let _end = soon(completions.closed()).await;
        });
    });
    let lines = lines.0.lock().unwrap().clone();
    assert!(!lines.concat().contains("secret"), "{lines:?}");
    lines
}

#[test]
fn the_end_of_a_stream_is_traced_with_counts_and_without_payload() {
    let stream = content(0, "secret") + &finish(0, "stop") + DONE;
    let size = stream.len();
    let lines = trace(vec![bytes(stream)]);
    let expected =
        format!("message=stream closed bytes={size} events=3 choices=1 outcome=\"complete\" ");
    assert!(lines.contains(&expected), "{lines:?}");
    let lines = trace(vec![bytes(content(0, "secret")), Step::Fail]);
    let failed = |line: &String| line.ends_with("choices=1 outcome=\"transport\" ");
    assert!(lines.iter().any(failed), "{lines:?}");
}

#[test]
fn a_panic_of_a_choices_machine_is_traced_once() {
    const PANICKED: &str = "message=a choice was lost: its machine panicked ";
    let panics = content(0, crate::state::batch::PANIC);
    let pause = Step::Pause(std::time::Duration::from_secs(1));
    for (second, expected) in [(panics, 1), (content(0, "b"), 0)] {
        let steps = [
            bytes(content(0, "a")),
            pause.clone(),
            bytes(second),
            bytes(DONE),
        ];
        let lines = trace(steps.to_vec());
        let panicked = lines.iter().filter(|line| *line == PANICKED);
        assert_eq!(panicked.count(), expected, "{lines:?}");
    }
}
