//! Reported usage, and the estimates beside it.

mod choices;

use serde_json::{Value, json};
use unbraid_testkit::cut::Rng;

use crate::{ChoiceIndex, Config, Demux, Event, Prompt, Tokenizer, Usage, UsageSource};

const DONE: &str = "data: [DONE]\n\n";

/// A chunk as OpenAI sends it, with these entries of `choices` and this usage.
fn chunk(choices: &Value, usage: &Value) -> String {
    format!(
        "data: {}\n\n",
        json!({ "choices": choices, "usage": usage })
    )
}

fn delta(index: u32, text: &str) -> Value {
    json!({ "index": index, "delta": { "content": text } })
}

fn finish(index: u32) -> Value {
    json!({ "index": index, "delta": {}, "finish_reason": "stop" })
}

fn usage(prompt: u64, completion: u64) -> Value {
    json!({ "prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion })
}

/// Three deltas of one word for each choice.
fn words(choices: u32) -> String {
    let round = || (0..choices).map(|index| chunk(&json!([delta(index, " a")]), &Value::Null));
    (0..3).flat_map(|_| round()).collect()
}

fn read(stream: &str, options: Config) -> Demux {
    let mut demux = Demux::new(options);
    demux.feed(stream.as_bytes());
    demux.finish();
    demux
}

fn tokens(text: &str) -> u64 {
    text.split_whitespace().count() as u64
}

/// `prompt completion total [choices] source`. `~` marks a counted number, `(~n)` a counted number beside a reported
/// one.
fn figures(usage: &Usage) -> String {
    let mark = |estimated| if estimated { "~" } else { "" };
    let show = |figure: Option<u64>, estimated| {
        figure.map_or_else(|| "-".to_owned(), |n| format!("{}{n}", mark(estimated)))
    };
    let estimated = &usage.estimated;
    let choices = usage.per_choice.iter().map(|(index, tokens)| {
        format!(
            "{index}:{}{tokens}",
            mark(estimated.choices.contains(index))
        )
    });
    let beside = usage.counted.map_or(String::new(), |n| format!("(~{n})"));
    format!(
        "{} {}{beside} {} {:?} {}",
        show(usage.prompt_tokens, estimated.prompt),
        show(usage.completion_tokens, estimated.completion),
        show(usage.total_tokens, estimated.total),
        choices.collect::<Vec<String>>(),
        usage.source.as_str(),
    )
    .replace('"', "")
}

#[track_caller]
fn check_for(request: &Value, stream: &str, expected: &str) -> Demux {
    let prompt = Prompt::from_request(request);
    let options = Config {
        choices_per_prompt: prompt.choices_per_prompt(),
        ..Config::default()
    };
    let demux = read(stream, options);
    assert_eq!(figures(&demux.estimated_usage(&prompt, &tokens)), expected);
    demux
}

#[track_caller]
fn check(stream: &str, expected: &str) -> Demux {
    check_for(&Value::Null, stream, expected)
}

fn warned(demux: &Demux) -> bool {
    demux.warnings().iter().any(|warning| warning.code == "U15")
}

#[test]
fn u09_a_value_in_place_of_a_count_is_kept_and_warned_of() {
    let check = |reports: &[&str], raw: &str, is_odd: bool| {
        let chunks: String = reports
            .iter()
            .map(|usage| format!("data: {{\"choices\":[],\"usage\":{usage}}}\n\n"))
            .collect();
        let demux = read(&(words(1) + &chunks + DONE), Config::default());
        assert_eq!(
            demux.usage().raw_json().as_deref(),
            Some(raw),
            "{reports:?}"
        );
        let codes: Vec<&str> = demux
            .warnings()
            .iter()
            .map(|warning| warning.code)
            .collect();
        let expected: &[&str] = if is_odd { &["U9"] } else { &[] };
        assert_eq!(codes, expected, "{reports:?}");
        demux.usage()
    };
    // Read when someone asks for it, unless one of these is in it.
    for odd in [
        "2.50",
        "18446744073709551616",
        "1e30",
        "\"2.5\"",
        "true",
        "[1]",
        "{\"a\":1}",
    ] {
        let report = format!("{{\"completion_tokens\":7,\"prompt_tokens\":{odd},\"cost\":0.5}}");
        let usage = check(&[&report], &report, true);
        assert_eq!(
            (usage.prompt_tokens, usage.completion_tokens),
            (None, Some(7))
        );
    }
    for other in ["5", "5.0", "\"5\"", "5e0", "18446744073709551615"] {
        let number = if other.len() < 20 { "5" } else { other };
        let report = |number| format!("{{\"completion_tokens\":7,\"prompt_tokens\":{number}}}");
        check(&[&report(other)], &report(number), false);
    }
    for none in [
        "-1", "-2.5", "\"-2.5\"", "\"\"", "null", "{}", "[]", "false",
    ] {
        let report = format!("{{\"prompt_tokens\":{none},\"completion_tokens\":7}}");
        check(&[&report], r#"{"completion_tokens":7}"#, false);
    }
    let count = r#"{"completion_tokens":7}"#;
    let odd = r#"{"completion_tokens":7.5}"#;
    check(&[count, odd], count, true);
    check(&[odd, count], count, true);
    check(&[r#"{"completion_tokens":6.5}"#, odd], odd, true);
    // Names of other providers.
    check(
        &[r#"{"promptTokenCount":2.5}"#],
        r#"{"promptTokenCount":2.5}"#,
        true,
    );
    check(&[r#"{"eval_count":2.5}"#], r#"{"eval_count":2.5}"#, true);
    // The usage of one choice.
    let choice = r#"data: {"choices":[{"index":0,"delta":{},"usage":{"prompt_tokens":2.5}}]}"#;
    let demux = read(&(words(1) + choice + "\n\n" + DONE), Config::default());
    assert_eq!(
        demux.usage().raw_json().as_deref(),
        Some(r#"{"prompt_tokens":2.5}"#)
    );
    assert!(demux.warnings().iter().any(|warning| warning.code == "U9"));
}

#[test]
fn e24_an_empty_text_or_list_in_the_usage_replaces_no_other_value() {
    let report = |usage: &str| format!("data: {{\"choices\":[],\"usage\":{usage}}}\n\n");
    let stream = report(r#"{"prompt_tokens":5,"service_tier":"standard","list":[1],"region":""}"#)
        + &report(r#"{"prompt_tokens":6,"service_tier":"","list":[],"region":"eu"}"#);
    let demux = read(&(words(1) + &stream + DONE), Config::default());
    let expected = r#"{"prompt_tokens":6,"service_tier":"standard","list":[1],"region":"eu"}"#;
    assert_eq!(demux.usage().raw_json().as_deref(), Some(expected));
}

#[test]
fn usage_is_the_same_however_often_it_is_asked_for() {
    let bare = |tokens| chunk(&json!([]), &usage(5, tokens));
    let with_finish = |index, tokens| chunk(&json!([finish(index)]), &usage(5, tokens));
    let ended = |index| chunk(&json!([finish(index)]), &Value::Null);
    for stream in [
        words(1) + &bare(3),
        words(1) + &with_finish(0, 3) + &bare(4),
        words(1) + &ended(0) + &bare(3) + DONE,
        words(1) + &chunk(&json!([delta(0, " b")]), &usage(5, 4)) + &with_finish(0, 4),
        words(2) + &with_finish(0, 3),
        words(2) + &with_finish(0, 3) + &with_finish(1, 4),
        words(2) + &ended(0) + &bare(3) + &ended(1) + &bare(4),
        words(1) + "data: {\"choices\":[],\"usage\":{\"cost\":1.50,\"n\":null}}\n\n",
    ] {
        let mut demux = read(&stream, Config::default());
        let mut event = None;
        while let Some(record) = demux.next_event() {
            if let Event::Usage(usage) = &record.event {
                event = Some((**usage).clone());
            }
        }
        let reported = demux.usage();
        assert_eq!(Some(&reported), event.as_ref(), "{stream}");
        assert_eq!(reported, demux.usage(), "{stream}");
    }
}

#[test]
fn u15_fewer_tokens_than_deltas_are_warned_about() {
    let bare = |tokens| chunk(&json!([]), &usage(5, tokens));
    let ended = |tokens| words(1) + &chunk(&json!([finish(0)]), &Value::Null) + &bare(tokens);
    assert!(warned(&check(&ended(2), "5 2(~3) 7 [0:2] mixed")));
    assert!(!warned(&check(&ended(3), "5 3 8 [0:3] reported")));
    // The usage of one choice in every chunk, and the stream is cut before the total (U8).
    let running = chunk(&json!([delta(1, " a")]), &usage(5, 4));
    let demux = check(&(words(2) + &running), "5 4(~7) 9 [0:~3, 1:~4] mixed");
    assert!(warned(&demux));
}

#[test]
fn u15_reasoning_that_is_reported_elsewhere_is_not_missing() {
    let xai = json!({ "prompt_tokens": 5, "completion_tokens": 1, "completion_tokens_details": { "reasoning_tokens": 2 } });
    let demux = check(
        &(words(1) + &chunk(&json!([]), &xai)),
        "5 1 6 [0:1] reported",
    );
    assert!(!warned(&demux));
    let gemini = json!({ "prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 8 });
    let demux = check(
        &(words(1) + &chunk(&json!([]), &gemini)),
        "5 1 8 [0:1] reported",
    );
    assert!(!warned(&demux));
}

#[test]
fn u15_an_update_without_text_does_not_count_as_a_delta() {
    let call = |function: Value| json!([{ "index": 0, "delta": { "tool_calls": [{ "index": 0, "function": function }] } }]);
    let stream = chunk(&call(json!({ "name": "f", "arguments": "" })), &Value::Null)
        + &chunk(&call(json!({ "arguments": "{}" })), &Value::Null)
        + &chunk(
            &json!([{ "index": 0, "delta": { "content": "" }, "logprobs": { "content": [] } }]),
            &Value::Null,
        )
        + &chunk(&json!([finish(0)]), &usage(5, 1));
    assert!(!warned(&check(&stream, "5 1 6 [0:1] reported")));
}

#[test]
fn nested_details_are_merged_field_by_field() {
    let details =
        |fields: Value| chunk(&json!([]), &json!({ "completion_tokens_details": fields }));
    let stream = words(1)
        + &chunk(&json!([]), &usage(5, 3))
        + &details(json!({ "reasoning_tokens": 2, "more": { "a": 1 } }))
        + &details(json!({ "audio_tokens": 1, "reasoning_tokens": null, "more": { "b": 2 } }))
        + &chunk(&json!([]), &json!({ "completion_tokens": { "odd": 1 } }));
    let demux = check(&stream, "5 3 8 [0:3] reported");
    assert_eq!(
        demux.usage().raw["completion_tokens_details"],
        json!({ "reasoning_tokens": 2, "more": { "a": 1, "b": 2 }, "audio_tokens": 1 })
    );
}

#[test]
fn an_invalid_number_replaces_nothing_in_a_running_usage() {
    let running = |completion: &str| {
        format!(
            "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\" a\"}}}}],\"usage\":{{\"completion_tokens\":{completion}}}}}\n\n"
        )
    };
    let stream = running("7") + &running("99999999999999999999");
    assert_eq!(
        read(&stream, Config::default()).usage().completion_tokens,
        Some(7)
    );
}

#[test]
fn nothing_reported_and_nothing_received_is_absent() {
    let demux = read("data: {\"choices\":[]}\n\n", Config::default());
    let usage = demux.estimated_usage(&Prompt::default(), &tokens as &dyn Tokenizer);
    assert_eq!(usage.source, UsageSource::Absent);
    assert_eq!(
        demux.choice(ChoiceIndex(0)).is_none(),
        usage.per_choice.is_empty()
    );
}

/// A name with an escape is not searched for, so its usage is read when it arrives.
#[test]
fn usage_is_the_same_whether_it_is_read_at_its_arrival_or_when_someone_asks() {
    let mut rng = Rng::new(15);
    let mut ends_unread = 0;
    for _ in 0..3_000 {
        let choices = 1 + rng.below(3) as u32;
        let mut stream = words(choices);
        let report = |rng: &mut Rng| match rng.below(4) {
            0 => Value::Null,
            1 => {
                json!({ "completion_tokens": rng.below(12), "extra": [null, {"b": 1}], "n": null })
            }
            2 => {
                json!({ "completion_tokens": rng.below(12), "completion_tokens_details": {"reasoning_tokens": rng.below(9)} })
            }
            _ => usage(rng.below(9) as u64, rng.below(12) as u64),
        };
        for index in 0..choices {
            if rng.chance(0.7) {
                stream += &chunk(&json!([finish(index)]), &report(&mut rng));
            }
            if rng.chance(0.3) {
                stream += &chunk(&json!([]), &report(&mut rng));
            }
            if rng.chance(0.1) {
                stream += &chunk(&json!([delta(index, " b")]), &report(&mut rng));
            }
        }
        if rng.chance(0.6) {
            stream += "data: [DONE]\n\n";
        }
        let events = |stream: &str| {
            let mut demux = read(stream, Config::default());
            let mut lines = Vec::new();
            while let Some(event) = demux.next_event() {
                lines.push(event.to_string());
            }
            (lines, demux.usage())
        };
        let at_once = stream.replace("completion_tokens\":", "completion_token\\u0073\":");
        assert_eq!(events(&stream), events(&at_once), "{stream}");
        ends_unread += u32::from(stream.matches("completion_tokens\":").count() == 1);
    }
    assert!(ends_unread > 300, "{ends_unread}");
}
