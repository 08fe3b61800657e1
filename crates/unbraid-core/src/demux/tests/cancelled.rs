//! What events of a cancelled choice still say about the completion.

use super::{DONE, Demux};
use crate::{ChoiceEnd, ChoiceIndex, Config, Usage};

fn entry(index: u32, fields: &str, beside: &str) -> String {
    format!("data: {{\"choices\":[{{\"index\":{index},{fields}}}]{beside}}}\n\n")
}

/// Reads two choices of two deltas each, then `rest`, with the first choice cancelled or not.
fn read(rest: &[String], is_cancelled: bool) -> Demux {
    let mut demux = Demux::new(Config::default());
    for index in [0, 1, 0, 1] {
        demux.feed(entry(index, "\"delta\":{\"content\":\"a\"}", "").as_bytes());
    }
    if is_cancelled {
        demux.cancel(ChoiceIndex(0));
    }
    for event in rest {
        demux.feed(event.as_bytes());
    }
    demux.feed(DONE.as_bytes());
    demux.finish();
    demux
}

/// Checks that the usage is the same whether the first choice was cancelled or not.
#[track_caller]
fn check(rest: &[String], completion_tokens: u64) -> Usage {
    let cancelled = read(rest, true).usage();
    assert_eq!(cancelled.completion_tokens, Some(completion_tokens));
    assert_eq!(cancelled, read(rest, false).usage());
    cancelled
}

fn finish(index: u32, beside: &str) -> String {
    entry(index, "\"delta\":{},\"finish_reason\":\"stop\"", beside)
}

fn usage(tokens: u32) -> String {
    format!(",\"usage\":{{\"prompt_tokens\":5,\"completion_tokens\":{tokens}}}")
}

#[test]
fn usage_beside_a_cancelled_choice_counts() {
    let delta = |tokens| entry(0, "\"delta\":{\"content\":\"a\"}", &usage(tokens));
    check(&[delta(7), delta(9)], 9);
    let own = "\"delta\":{},\"usage\":{\"completion_tokens\":4}";
    check(&[entry(0, own, "")], 4);
}

#[test]
fn usage_after_the_finish_of_a_cancelled_choice_is_that_of_the_choice() {
    let bare = |tokens| format!("data: {{\"choices\":[]{}}}\n\n", usage(tokens));
    let rest = [finish(0, ""), bare(10), finish(1, ""), bare(3)];
    let after = check(&rest, 13);
    assert_eq!(
        after.per_choice,
        [(ChoiceIndex(0), 10), (ChoiceIndex(1), 3)]
    );
    check(&[finish(0, &usage(10)), finish(1, &usage(3))], 13);
}

#[test]
fn the_envelope_beside_a_cancelled_choice_is_read() {
    let beside = ",\"id\":\"c1\",\"model\":\"m\",\"created\":8,\"service_tier\":\"flex\"";
    let demux = read(&[finish(0, beside)], true);
    let metadata = demux.metadata();
    assert_eq!(metadata.id.as_deref(), Some("c1"));
    assert_eq!(metadata.model.as_deref(), Some("m"));
    assert_eq!(metadata.created, Some(8));
    assert_eq!(&*metadata.extra[0].1, "\"flex\"");
}

/// The fragments of an Anthropic call replace the input in its start (A8), so that waits for them.
#[test]
fn a_cancel_comes_after_the_input_in_the_start_of_a_call() {
    let call = r#"{"type":"tool_use","id":"t","name":"f","input":{"x":1}}"#;
    let start = format!(r#"{{"type":"content_block_start","index":0,"content_block":{call}}}"#);
    let mut demux = Demux::new(Config::default());
    demux.feed(format!("data: {start}\n\n").as_bytes());
    demux.cancel(ChoiceIndex(0));
    let choice = demux.choice(ChoiceIndex(0)).unwrap();
    assert_eq!(choice.end(), Some(&ChoiceEnd::Cancelled));
    assert_eq!(choice.message().tool_calls[0].arguments, r#"{"x":1}"#);
}

/// G6: content may follow a reason of Gemini, so it waits for the end of the body.
#[test]
fn a_reason_of_gemini_does_not_count_before_the_end_of_the_body() {
    let finished =
        r#"{"candidates":[{"content":{"parts":[{"text":"Hi"}]},"finishReason":"STOP"}]}"#;
    let mut demux = Demux::new(Config::default());
    demux.feed(format!("data: {finished}\n\n").as_bytes());
    demux.cancel(ChoiceIndex(0));
    let choice = demux.choice(ChoiceIndex(0)).unwrap();
    assert_eq!(choice.end(), Some(&ChoiceEnd::Cancelled));
}
