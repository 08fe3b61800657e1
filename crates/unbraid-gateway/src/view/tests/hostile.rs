//! Payloads that no ordinary server sends: nothing panics, and nothing is lost.

use proptest::prelude::*;
use unbraid_core::{ChoiceIndex, Config, Demux};
use unbraid_log::{Event, Meta};

use super::script::{Script, choice, kept, part};
use crate::view::{Part, Start, Target};

/// Indices in every form that the core knows, and some that it refuses.
fn index() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => (0..4_u32).prop_map(|index| format!(r#""index":{index},"#)),
        1 => (0..4_u32).prop_map(|index| format!(r#""index":"{index}","#)),
        1 => (0..4_u32).prop_map(|index| format!(r#""\u0069ndex": " {index} ","#)),
        1 => (0..4_u32).prop_map(|index| format!(r#""index":9,"index":{index},"#)),
        1 => Just(r#""index":null,"#.to_owned()),
        1 => Just(r#""index":"","#.to_owned()),
        1 => Just(String::new()),
        1 => prop::sample::select(vec!["-1", "1.5", "1.0", "true", "[]", "\"x\"", "4294967296", "1e0"])
            .prop_map(|index| format!(r#""index":{index},"#)),
    ]
}

fn entry() -> impl Strategy<Value = String> {
    let message = prop_oneof![
        4 => Just(r#""delta":{"content":"ab"}"#),
        1 => Just(r#""delta":{"content":"}],\"[{\\"}"#),
        1 => Just(r#""delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}]}"#),
        1 => Just(r#""delta":{"\u0063ontent":"cd"}, "x":[{"choices":[{"index":1}]}]"#),
        1 => Just(r#""message":{"role":"assistant","content":"ef"}"#),
        1 => Just(r#""text":"gh""#),
    ];
    prop_oneof![
        9 => (index(), message).prop_map(|(index, message)| format!("{{{index}{message}}}")),
        1 => prop::sample::select(vec!["null", "1", "[]", "{}", "\"{\""]).prop_map(str::to_owned),
    ]
}

fn chunk() -> impl Strategy<Value = String> {
    let list = prop::collection::vec(entry(), 0..4)
        .prop_map(|entries| format!("[{}]", entries.join(" , ")));
    let list = prop_oneof![9 => list, 1 => entry().prop_filter("an object", |entry| entry.starts_with('{'))];
    let head = prop::sample::select(vec![
        r#"{"id":"c",""#,
        r#"{ "usage":null, ""#,
        r#"{"choices":[],""#,
        "{\n\"a\":\"[{\",\"",
    ]);
    let key = prop::sample::select(vec!["choices", "\\u0063hoices"]);
    (head, key, list).prop_map(|(head, key, list)| format!("{head}{key}\" : {list}}}"))
}

/// The choices of one chunk, by the core.
fn choices(payload: &str) -> Vec<u32> {
    let mut demux = Demux::new(Config::default());
    feed(&mut demux, payload);
    demux.choices().map(|choice| choice.index().0).collect()
}

fn feed(demux: &mut Demux, payload: &str) {
    for line in payload.lines() {
        demux.feed(format!("data: {line}\n").as_bytes());
    }
    demux.feed(b"\n");
}

fn read(script: &Script, target: Target) -> Demux {
    let mut demux = Demux::new(Config::default());
    demux.feed(script.read(target, Start::Beginning).0.as_bytes());
    demux
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// E8 to E12, E26: an entry belongs to the choice that the core gives it.
    #[test]
    fn e8_e9_e10_e11_e26_a_view_has_the_entries_that_the_core_routes_to_its_choice(
        payloads in prop::collection::vec(chunk(), 1..6),
    ) {
        let mut script = Script::new(4);
        let mut combined = Demux::new(Config::default());
        for payload in &payloads {
            script.chunk(&choices(payload), payload);
            feed(&mut combined, payload);
        }
        for index in (0..4).map(ChoiceIndex) {
            let expected = combined.choice(index).map(|choice| choice.message());
            let zero = read(&script, choice(index.0));
            prop_assert_eq!(zero.choice(ChoiceIndex(0)).map(|choice| choice.message()), expected.clone());
            prop_assert!(zero.choices().all(|choice| choice.index().0 == 0), "no entry of another choice");
            let same = read(&script, kept(index.0));
            prop_assert_eq!(same.choice(index).map(|choice| choice.message()), expected);
        }
    }

    #[test]
    fn no_bytes_panic(
        payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 1..4),
        words in prop::collection::vec(prop::sample::select(vec![
            "{", "}", "[", "]", "\"", "\\", ",", ":", "choices", "index", "delta", "\"choices\":[{", "null", "0", " ", "\n", "tool_calls",
        ]), 0..40),
    ) {
        let mut script = Script::new(2);
        for payload in payloads.iter().map(Vec::as_slice).chain([words.concat().as_bytes()]) {
            let both = [ChoiceIndex(0), ChoiceIndex(1)];
            script.push(&Event::chunk(&both, payload));
            script.push(&Event::chunk(&both[..1], payload));
        }
        for target in [
            Target::Combined, choice(0), kept(1), part(0, Part::Content), part(1, Part::ToolCall(0)), part(0, Part::Reasoning),
        ] {
            for start in [Start::Beginning, Start::Snapshot, Start::Tail] {
                script.read(target, start);
            }
            script.view.json(target, true).unwrap();
        }
        for payload in &payloads {
            let _any = crate::view::set_index(payload, ChoiceIndex(1));
            let _any = crate::view::without_choices(payload, &[ChoiceIndex(1)]);
        }
    }

    /// Only the entries of other choices and the index change.
    #[test]
    fn everything_else_stays_byte_for_byte(before in "[ -~]{0,20}", after in "[ -~]{0,20}", index in 0..300_u32) {
        let text = |text: &str| serde_json::Value::from(text).to_string();
        let chunk = |index: u32| format!(
            "{{ \"a\" :{},\"choices\":[ {{ \"x\": 1.50,\"index\" : {index} ,\"delta\":{{}} }} ],\"z\":{}, \"n\":1e400 }}",
            text(&before), text(&after)
        );
        let mut script = Script::new(1);
        script.chunk(&[index], &chunk(index));
        let (shown, _) = script.read(choice(index), Start::Beginning);
        prop_assert_eq!(shown, format!("retry: 1000\nid: 1\ndata: {}\n\n", chunk(0)));
    }
}

#[track_caller]
fn check(target: Target, payload: &str, choices: &[u32], expected: &str) {
    let mut script = Script::new(4);
    script.chunk(choices, payload);
    let (shown, _) = script.read(target, Start::Beginning);
    let data: Vec<&str> = shown
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .collect();
    assert_eq!(data.join("\n"), expected);
}

#[test]
fn several_entries_are_divided() {
    let payload = r#"{"choices":[{"index":0,"text":"a"}, {"index":2,"text":"b"} ,{"index":0,"text":"c"}],"x":1}"#;
    check(
        choice(0),
        payload,
        &[0, 2, 0],
        r#"{"choices":[{"index":0,"text":"a"},{"index":0,"text":"c"}],"x":1}"#,
    );
    check(
        choice(2),
        payload,
        &[0, 2, 0],
        r#"{"choices":[{"index":0,"text":"b"}],"x":1}"#,
    );
    check(
        kept(2),
        payload,
        &[0, 2, 0],
        r#"{"choices":[{"index":2,"text":"b"}],"x":1}"#,
    );
}

#[test]
fn a_missing_index_is_written_in_the_view() {
    let payload = r#"{"choices":[{"text":"a"},{"text":"b"},{}]}"#;
    check(
        choice(1),
        payload,
        &[0, 1, 2],
        r#"{"choices":[{"index":0,"text":"b"}]}"#,
    );
    check(
        kept(1),
        payload,
        &[0, 1, 2],
        r#"{"choices":[{"index":1,"text":"b"}]}"#,
    );
    check(
        choice(2),
        payload,
        &[0, 1, 2],
        r#"{"choices":[{"index":0}]}"#,
    );
}

#[test]
fn lists_of_chunks_and_several_chunks_in_one_event_are_divided() {
    let list = r#"[{"choices":[{"index":0,"text":"a"}]},{"choices":[{"index":1,"text":"b"}]}]"#;
    check(
        choice(1),
        list,
        &[0, 1],
        r#"[{"choices":[]},{"choices":[{"index":0,"text":"b"}]}]"#,
    );
    let several = "{\"choices\":[{\"index\":0,\"text\":\"a\"}]}\n{\"choices\":[{\"index\":1,\"text\":\"b\"}]}";
    check(
        choice(1),
        several,
        &[0, 1],
        "{\"choices\":[]}\n{\"choices\":[{\"index\":0,\"text\":\"b\"}]}",
    );
}

#[test]
fn damaged_json_passes_unchanged() {
    for payload in [
        r#"{"choices":[{"index":1,"delta":{"content":"a"}}"#,
        "x",
        r#"{"choices":[{"index":1,}]}"#,
        r#"{"choices":7}"#,
    ] {
        check(choice(1), payload, &[1], payload);
    }
}

/// A producer that does not fold indices has logged the choices as they were sent.
#[test]
fn e12_indices_that_were_not_folded_stay_apart() {
    let mut script = Script::of(Meta::new("/v1/chat/completions", 7).with_n(1));
    let both =
        r#"{"choices":[{"index":0,"delta":{"content":"a"}},{"index":1,"delta":{"content":"b"}}]}"#;
    script.chunk(&[0, 1], both);
    for (index, text) in [(0, "a"), (1, "b")] {
        let demux = read(&script, choice(index));
        assert_eq!(
            demux.choice(ChoiceIndex(0)).unwrap().message().content,
            text
        );
    }
    let json: serde_json::Value =
        serde_json::from_str(&script.view.json(Target::Combined, false).unwrap()).unwrap();
    assert_eq!(json["choices"][1]["message"]["content"], "b");
}

/// E12: the core has read every index as 0.
#[test]
fn e12_folded_indices_belong_to_the_only_choice() {
    let mut script = Script::of(Meta::new("/v1/chat/completions", 7).with_n(1));
    for index in [0, 5, 9] {
        script.chunk(
            &[0],
            &format!(r#"{{"choices":[{{"index":{index},"delta":{{"content":"a"}}}}]}}"#),
        );
    }
    script.chunk(
        &[0],
        r#"{"choices":[{"index":3,"delta":{"content":"b"}},{"index":4,"delta":{"content":"c"}}]}"#,
    );
    let demux = read(&script, choice(0));
    assert_eq!(
        demux.choice(ChoiceIndex(0)).unwrap().message().content,
        "aaabc"
    );
    assert_eq!(demux.choices().count(), 1);
    let json = script.view.json(choice(0), false).unwrap();
    assert!(json.contains(r#""content":"aaabc""#), "{json}");
}
