//! Panics and kills: they end what they hit and nothing else, and no waiter is left hanging.

use futures::stream;
use unbraid_testkit::script::{DONE, Script, Step, bytes, content, finish};

use super::{all_choices, ends, read, soon};
use crate::{Completions, StreamError, TimedOut, Timeout};

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
