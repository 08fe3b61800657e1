//! `--split-think` (C18): reasoning in tags, for every command that reads an answer.

use serde_json::json;
use unbraid_testkit::fixture::Fixture;

use crate::unbraid;

const ANSWER: &[u8] = b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"<think>\\nHm.</th\"}}]}\n\n\
    data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"ink>\\n\\nYes.\"},\"finish_reason\":\"stop\"}]}\n\n\
    data: [DONE]\n\n";

#[test]
fn c18_collect_separates_reasoning_in_tags() {
    for args in ["collect --split-think", "--split-think collect"] {
        let run = unbraid(args, ANSWER);
        let message = &run.json()["choices"][0]["message"];
        assert_eq!(message["reasoning"], "Hm.", "{args}");
        assert_eq!(message["content"], "Yes.", "{args}");
    }
    let message = &unbraid("collect", ANSWER).json()["choices"][0]["message"];
    assert_eq!(message["content"], "<think>\nHm.</think>\n\nYes.");
}

#[test]
fn c18_events_and_watch_separate_reasoning_in_tags() {
    let lines = unbraid("events --split-think", ANSWER).lines();
    let expected = json!({"seq":4,"choice":0,"type":"reasoning.done","reasoning":"Hm."});
    assert_eq!(lines[4], expected);
    let watched = unbraid("watch --plain --split-think", ANSWER).stdout;
    assert!(watched.starts_with("[0] ~ Hm.\n[0] Yes.\n"), "{watched}");
}

#[test]
fn c18_split_writes_reasoning_in_tags_into_a_separate_file() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().to_str().unwrap();
    let run = unbraid(&format!("split --split-think --out {out}"), ANSWER);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let read = |name: &str| std::fs::read_to_string(dir.path().join(name)).unwrap();
    assert_eq!(read("choice-0.txt"), "Yes.");
    assert_eq!(read("choice-0.reasoning.txt"), "Hm.");
}

#[test]
fn c18_the_answer_may_begin_with_reasoning() {
    let fixture = Fixture::named("openai_chat/deepseek-c18-template-opens-the-tag");
    let run = unbraid("collect --split-think=start", &fixture.bytes);
    let message = &run.json()["choices"][0]["message"];
    assert_eq!(message["reasoning"], "The tide turns.\n");
    assert_eq!(message["content"], "At six.");
    assert_eq!(unbraid("collect --split-think=end", b"").code, 2);
}

#[test]
fn u13_usage_after_done_is_counted_with_the_option() {
    let fixture = Fixture::named("openai_chat/proxy-u13-s26-after-done");
    let usage = |args: &str| unbraid(args, &fixture.bytes).json()["usage"].clone();
    assert!(usage("collect").is_null());
    assert_eq!(usage("collect --usage-after-done")["total_tokens"], 2);
}
