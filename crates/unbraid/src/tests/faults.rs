//! Panics and kills: they end what they hit and nothing else, and no waiter is left hanging.

use futures::stream;
use unbraid_testkit::script::{DONE, Script, Step, bytes, content, finish};

use super::{all_choices, ends, outcome, read, soon};
use crate::{Choice, Completions, StreamError, TimedOut, Timeout};

/// The trace of a choice, without the texts of its warnings.
async fn trace(choice: &Choice) -> Vec<String> {
    let mut events = choice.events();
    let mut lines = Vec::new();
    while let Some(Ok(event)) = soon(events.next()).await {
        lines.push(event.to_string());
    }
    lines
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_the_source_loses_what_is_open() {
    let steps = [
        bytes(content(0, "a")),
        bytes(finish(0, "stop")),
        bytes(content(1, "b")),
        Step::Panic,
    ];
    let completions = read(steps);
    assert_eq!(
        ends(&completions).await,
        ["0 finished \"a\"", "1 lost \"b\""]
    );
    assert!(matches!(
        soon(completions.closed()).await,
        Err(StreamError::Lost)
    ));
}

#[tokio::test(start_paused = true)]
async fn a_panic_while_decoding_loses_what_is_open() {
    let completions = read([bytes(content(0, "a")), Step::PanicInRead, bytes(DONE)]);
    assert_eq!(ends(&completions).await, ["0 lost \"a\""]);
    let (_, error) = all_choices(&completions).await;
    assert!(matches!(error, Some(StreamError::Lost)));
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_a_choice_leaves_its_siblings() {
    let mut steps = vec![
        bytes(content(0, "a")),
        bytes(content(1, "b")),
        bytes(content(2, "c")),
        Step::Yield,
    ];
    steps.push(bytes(content(1, crate::state::batch::PANIC)));
    steps.extend([
        bytes(content(0, "A")),
        bytes(content(1, "B")),
        bytes(content(2, "C")),
    ]);
    steps.extend([
        bytes(finish(0, "stop")),
        bytes(finish(2, "stop")),
        bytes(DONE),
    ]);
    let completions = read(steps);
    assert_eq!(
        ends(&completions).await,
        ["0 finished \"aA\"", "1 lost \"b\"", "2 finished \"cC\""]
    );
    assert!(soon(completions.closed()).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_a_choices_first_batch_still_shows_the_choice() {
    let completions = read([
        bytes(content(0, crate::state::batch::PANIC)),
        bytes(content(1, "b")),
        bytes(DONE),
    ]);
    assert_eq!(
        ends(&completions).await,
        ["0 lost \"\"", "1 done_without_finish \"b\""]
    );
}

/// The traces of eight choices, one of which may be killed in the middle.
async fn eight(killed: Option<usize>) -> Vec<Vec<String>> {
    let round = |text: &str| {
        (0..8)
            .map(|choice| bytes(content(choice, text)))
            .collect::<Vec<_>>()
    };
    let pause = || Step::Pause(std::time::Duration::from_secs(1));
    let mut steps = round("a");
    for _ in 0..2 {
        steps.push(Step::Yield);
        steps.extend(round("b")); // in the third read, the actors are started
    }
    steps.push(pause());
    steps.extend(round("c"));
    steps.extend((0..8).map(|choice| bytes(finish(choice, "stop"))));
    steps.push(bytes(DONE));
    let completions = read(steps);
    let eighth = soon(completions.choice(7)).await.unwrap();
    drop(eighth);
    // Wait until every actor has started its long handler.
    tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    if let Some(killed) = killed {
        kill(&completions, killed);
    }
    let (choices, error) = all_choices(&completions).await;
    assert!(error.is_none());
    let mut traces = Vec::new();
    for choice in &choices {
        traces.push(trace(choice).await);
    }
    traces
}

/// Kills the n-th actor that was started; actor ids ascend.
fn kill(completions: &Completions, nth: usize) {
    let mut children = completions
        .reader()
        .expect("the stream is open")
        .get_children();
    children.sort_by_key(|child| child.get_id().pid());
    children[nth].kill();
}

#[tokio::test(start_paused = true)]
async fn a_killed_choice_leaves_its_siblings_traces_unchanged() {
    let whole = eight(None).await;
    for killed in [0, 3, 7] {
        let traces = eight(Some(killed)).await;
        for (choice, (trace, expected)) in traces.iter().zip(&whole).enumerate() {
            if choice == killed {
                let last = trace.last().unwrap();
                assert!(last.contains("\"end\":\"lost\""), "{last}");
                let has = |text: &str| trace.iter().any(|line| line.contains(text));
                assert!(has("\"a\"") && has("\"b\""), "what had arrived is there");
                assert!(!has("\"c\""));
            } else {
                assert_eq!(trace, expected);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_killed_choice_ends_at_once_although_the_reader_is_inside_its_handler() {
    let completions = read([
        bytes(content(0, "a")),
        bytes(content(1, "b")),
        Step::Yield,
        bytes(content(0, "a")),
        Step::Yield,
        bytes(content(0, "a")),
        Step::Stall,
    ]);
    let choice = soon(completions.choice(0)).await.unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    kill(&completions, 0);
    let ended =
        tokio::time::timeout(std::time::Duration::from_millis(100), choice.finished()).await;
    assert_eq!(
        ended
            .expect("the choice ends at once")
            .unwrap_err()
            .end()
            .as_str(),
        "lost"
    );
    let sibling = soon(completions.choice(1)).await.unwrap();
    let open = tokio::time::timeout(std::time::Duration::from_secs(60), sibling.finished()).await;
    assert!(open.is_err(), "the sibling goes on");
}

#[tokio::test(start_paused = true)]
async fn a_killed_reader_loses_what_is_open() {
    for reads in 1..=4 {
        // After one read there are no actors, after two the reader has one, and after more choice 1 has one, too.
        let mut steps = vec![
            bytes(content(0, "a")),
            bytes(finish(0, "stop")),
            bytes(content(1, "b")),
        ];
        for _ in 1..reads {
            steps.extend([Step::Yield, bytes(content(1, "b"))]);
        }
        steps.push(Step::Stall);
        let completions = read(steps);
        let open = soon(completions.choice(1)).await.unwrap();
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        assert_eq!(completions.reader().is_some(), reads > 1);
        assert_eq!(actors(&completions), usize::from(reads > 2));
        completions.kill_reader();
        assert_eq!(outcome(&open).await.end.as_str(), "lost");
        assert!(matches!(
            soon(completions.closed()).await,
            Err(StreamError::Lost)
        ));
        let text = "b".repeat(reads);
        assert_eq!(
            ends(&completions).await,
            ["0 finished \"a\"".to_owned(), format!("1 lost {text:?}")]
        );
    }
}

/// How many choices have an actor.
fn actors(completions: &Completions) -> usize {
    let reader = completions.reader();
    reader.map_or(0, |reader| reader.get_children().len())
}

#[tokio::test(start_paused = true)]
async fn only_a_choice_that_is_open_after_two_reads_gets_an_actor() {
    let wait = || Step::Pause(std::time::Duration::from_secs(1));
    let completions = read([
        bytes(content(0, "a")),
        bytes(content(1, "b")),
        wait(),
        bytes(finish(0, "stop")),
        bytes(content(1, "B")), // ends choice 0, in the same read
        wait(),
        bytes(content(1, "B")),
        wait(),
        bytes(content(1, "B")),
        wait(),
        bytes(finish(1, "stop")),
        bytes(DONE),
    ]);
    let choice = soon(completions.choice(0)).await.unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    for (reader, choices) in [(false, 0), (true, 0), (true, 1), (true, 1)] {
        assert_eq!(completions.reader().is_some(), reader);
        assert_eq!(actors(&completions), choices, "that of choice 1");
        tokio::time::sleep(std::time::Duration::from_millis(1000)).await;
    }
    assert_eq!(outcome(&choice).await.end.as_str(), "finished");
    assert_eq!(
        ends(&completions).await,
        ["0 finished \"a\"", "1 finished \"bBBB\""]
    );
}

#[tokio::test(start_paused = true)]
async fn a_stream_error_of_the_source_is_kept() {
    let passed = TimedOut::new(Timeout::FirstByte, std::time::Duration::from_secs(5));
    let reads = [Ok(content(0, "a")), Err(StreamError::TimedOut(passed))];
    let completions = Completions::from_byte_stream(stream::iter(reads));
    assert_eq!(ends(&completions).await, ["0 timed_out \"a\""]);
    let closed = soon(completions.closed()).await;
    assert!(matches!(closed, Err(StreamError::TimedOut(kept)) if kept == passed));
}

#[tokio::test(start_paused = true)]
async fn x14_an_event_that_lacks_its_blank_line_is_read_before_the_failure() {
    let steps = || {
        let second = content(0, "b");
        [bytes(content(0, "a")), bytes(second.trim_end()), Step::Fail]
    };
    let completions = read(steps());
    assert_eq!(ends(&completions).await, ["0 transport \"ab\""]);

    let mut flat = crate::Updates::from_byte_stream(Script::new(steps()));
    let mut text = String::new();
    let error = loop {
        match soon(flat.next()).await.unwrap() {
            Ok(update) => text.extend(update.content.map(|content| content.text.to_string())),
            Err(error) => break error,
        }
    };
    assert_eq!(text, "ab");
    let bytes = content(0, "a").len() + content(0, "b").trim_end().len();
    let expected = format!("connection lost after {bytes} bytes");
    assert_eq!(error.to_string(), expected);
    assert!(soon(flat.next()).await.is_none());
}
