//! One answer, written in every dialect, as a stream and as a body, gives the same outcome.

mod render;

use proptest::prelude::*;
use serde_json::{Value, json};
use unbraid_core::{Config, Demux, Dialect, FinishClass, StreamError};
use unbraid_testkit::{cut::random_cuts, dialects::message};

use crate::support::{demux, lines};
use render::{body, stream};

/// How an answer ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Ending {
    Complete,
    Cut,
}

/// An answer of a model.
#[derive(Debug, Clone)]
pub(crate) struct Script {
    pub(crate) reasoning: Vec<String>,
    pub(crate) text: Vec<String>,
    /// The names and arguments of the calls.
    pub(crate) calls: Vec<(String, Value)>,
    pub(crate) ending: Ending,
    pub(crate) prompt_tokens: u64,
    pub(crate) completion_tokens: u64,
}

/// What every dialect says about the same answer.
#[derive(Debug, PartialEq)]
struct Outcome {
    role: Option<String>,
    reasoning: String,
    content: String,
    calls: Vec<(String, Value, Option<&'static str>)>,
    end: Option<&'static str>,
    class: Option<FinishClass>,
    usage: (Option<u64>, Option<u64>),
}

fn outcome(demux: &Demux, has_calls: bool) -> Outcome {
    let choice = demux.choices().next().expect("one choice");
    let message = choice.message();
    let calls = message.tool_calls.iter().map(|call| {
        let arguments = serde_json::from_str(&call.arguments).expect("complete arguments");
        (
            call.name.to_string(),
            arguments,
            call.status.map(|status| status.as_str()),
        )
    });
    let usage = demux.usage();
    let class = choice.finish_reason().map(|reason| reason.class());
    Outcome {
        role: message.role.as_deref().map(str::to_owned),
        reasoning: message.reasoning.clone(),
        content: message.content.clone(),
        calls: calls.collect(),
        end: choice.end().map(|end| end.as_str()),
        // Three dialects report calls with the word for a complete answer.
        class: class.map(|class| match class {
            FinishClass::ToolCalls if has_calls => FinishClass::Stop,
            class => class,
        }),
        usage: (usage.prompt_tokens, usage.completion_tokens),
    }
}

fn expected(script: &Script) -> Outcome {
    let calls = script.calls.iter();
    Outcome {
        role: Some("assistant".to_owned()),
        reasoning: script.reasoning.concat(),
        content: script.text.concat(),
        calls: calls
            .map(|(name, arguments)| (name.clone(), arguments.clone(), Some("complete")))
            .collect(),
        end: Some("finished"),
        class: Some(match script.ending {
            Ending::Complete => FinishClass::Stop,
            Ending::Cut => FinishClass::Length,
        }),
        usage: (Some(script.prompt_tokens), Some(script.completion_tokens)),
    }
}

const DIALECTS: [Dialect; 7] = [
    Dialect::Chat,
    Dialect::Responses,
    Dialect::Anthropic,
    Dialect::Gemini,
    Dialect::Ollama,
    Dialect::Cohere,
    Dialect::Bedrock,
];

/// Checks one answer in every dialect, as a stream at random cuts and as a body.
#[track_caller]
fn check(script: &Script, seed: u64) {
    for dialect in DIALECTS {
        for bytes in [stream(script, dialect), body(script, dialect)] {
            let shown = String::from_utf8_lossy(&bytes);
            let (read, events) = demux([bytes.as_slice()], Config::default());
            assert_eq!(read.closed(), Some(&Ok(())), "{dialect}: {shown}");
            assert_eq!(read.metadata().dialect(), Some(dialect), "{shown}");
            let has_calls = !script.calls.is_empty();
            assert_eq!(
                outcome(&read, has_calls),
                expected(script),
                "{dialect}: {shown}"
            );
            assert!(
                read.warnings().is_empty() || dialect == Dialect::Chat,
                "{dialect}: {:?}",
                read.warnings()
            );
            let (_, cut) = demux(random_cuts(&bytes, seed, 7), Config::default());
            assert_eq!(lines(&cut), lines(&events), "{dialect}, cut: {shown}");
        }
    }
}

fn texts() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec("[a-zé😀 \"\\\\\n{}]{1,8}", 0..4)
}

fn scripts() -> impl Strategy<Value = Script> {
    let arguments = prop::collection::btree_map("[a-z]{1,4}", "[a-z\"é]{0,6}", 0..4);
    let call = ("[a-z_]{1,8}", arguments).prop_map(|(name, arguments)| (name, json!(arguments)));
    let ending = prop_oneof![Just(Ending::Complete), Just(Ending::Cut)];
    (
        texts(),
        texts(),
        prop::collection::vec(call, 0..4),
        ending,
        1..500_u64,
        500..9000_u64,
    )
        .prop_map(
            |(reasoning, text, mut calls, ending, prompt_tokens, completion_tokens)| {
                if ending == Ending::Cut {
                    calls.clear(); // of a cut answer, the calls would not be complete
                }
                Script {
                    reasoning,
                    text,
                    calls,
                    ending,
                    prompt_tokens,
                    completion_tokens,
                }
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_answer_is_the_same_in_every_dialect(script in scripts(), seed: u64) {
        check(&script, seed);
    }
}

#[test]
fn an_empty_answer_is_the_same_in_every_dialect() {
    let script = Script {
        reasoning: Vec::new(),
        text: Vec::new(),
        calls: Vec::new(),
        ending: Ending::Complete,
        prompt_tokens: 1,
        completion_tokens: 500,
    };
    check(&script, 0);
}

/// The end of a stream that is damaged.
#[track_caller]
fn closed(
    bytes: &[u8],
) -> (
    Option<Result<(), StreamError>>,
    Option<&'static str>,
    String,
) {
    let (read, _) = demux([bytes], Config::default());
    let choice = read.choices().next();
    let content = choice.map_or_else(String::new, |choice| choice.message().content);
    let end = choice
        .and_then(|choice| choice.end())
        .map(|end| end.as_str());
    (read.closed().cloned(), end, content)
}

#[test]
fn bad_input_keeps_what_arrived_and_ends_with_a_type() {
    let converse = |text: &str| {
        let payload = json!({ "contentBlockIndex": 0, "delta": { "text": text } }).to_string();
        let headers = [
            (":event-type", "contentBlockDelta"),
            (":message-type", "event"),
        ];
        message(&headers, payload.as_bytes())
    };
    let mut wrong = converse("b");
    let last = wrong.len() - 1;
    wrong[last] ^= 1;
    let (result, end, content) = closed(&[converse("a"), wrong].concat());
    assert!(
        matches!(result, Some(Err(StreamError::Malformed { .. }))),
        "{result:?}"
    );
    assert_eq!((end, content.as_str()), (Some("interrupted"), "a"));

    let huge = [0xFF; 12];
    let (result, end, content) = closed(&[converse("a"), huge.to_vec()].concat());
    assert!(
        matches!(result, Some(Err(StreamError::Malformed { .. }))),
        "{result:?}"
    );
    assert_eq!((end, content.as_str()), (Some("interrupted"), "a"));

    let delta =
        |text: &str| json!({ "candidates": [{ "content": { "parts": [{ "text": text }] } }] });
    let open = format!("[{},\n{}", delta("a"), delta("b"));
    assert_eq!(
        closed(open.as_bytes()),
        (Some(Ok(())), Some("interrupted"), "ab".to_owned())
    );
}

#[test]
fn g03_an_array_that_is_never_closed_is_read_with_bounded_memory() {
    use unbraid_core::internal::{FrameLimits, Framer};
    let mut framer = Framer::new(FrameLimits::new(1024, 1024), false);
    let mut count = 0;
    for read in std::iter::once("[").chain(std::iter::repeat_n("{\"candidates\":[]},\n", 100_000)) {
        let mut bytes = read.as_bytes();
        while let Some(frame) = framer.next(&mut bytes) {
            assert!(frame.is_ok());
            count += 1;
        }
        assert!(framer.buffered_bytes() < 64);
    }
    assert_eq!(count, 100_000);
}

#[test]
fn d16_blocks_of_megabytes_are_kept_up_to_a_limit() {
    let start = json!({ "type": "message_start", "message": { "id": "m", "role": "assistant", "content": [] } });
    let mut stream = format!("data: {start}\n\n");
    for index in 0..40 {
        let block = json!({ "type": "content_block_start", "index": index, "content_block": { "type": "redacted_thinking", "data": "x".repeat(1 << 20) } });
        stream.extend(["data: ", &block.to_string(), "\n\n"]);
        let delta = json!({ "type": "content_block_delta", "index": index, "delta": { "type": "signature_delta", "signature": "s" } });
        stream.extend(["data: ", &delta.to_string(), "\n\n"]);
    }
    stream += "data: {\"type\":\"message_stop\"}\n\n";
    let (read, _) = demux([stream.as_bytes()], Config::default());
    assert!(read.warnings().iter().any(|warning| warning.code == "D16"));
    let message = read.choices().next().expect("a choice").message();
    let (_, details) = message
        .extra
        .iter()
        .find(|(key, _)| **key == *"reasoning_details")
        .expect("kept");
    assert!(
        (20 << 20..40 << 20).contains(&details.len()),
        "{}",
        details.len()
    );
}
