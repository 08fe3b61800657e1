//! Typed holes: a value that differs between two chunks of the same keys becomes a hole for values of its type.

use super::{check_fast_paths, template_hits};

/// Decodes a chunk with each value in place of `$`. Returns which of them matched, after a comparison with `serde_json`.
#[track_caller]
fn hits(chunk: &str, values: &[&str]) -> Vec<bool> {
    let chunks: Vec<String> = values
        .iter()
        .map(|value| chunk.replace('$', value))
        .collect();
    let stream: Vec<String> = chunks
        .iter()
        .map(|chunk| format!("data: {chunk}\n\n"))
        .collect();
    check_fast_paths(stream.concat().as_bytes(), chunk);
    template_hits(&chunks.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Checks that two different values make a hole, which the good values match and the bad ones do not.
#[track_caller]
fn check(chunk: &str, [first, second]: [&str; 2], good: &[&str], bad: &[&str]) {
    for (others, expected) in [(good, true), (bad, false)] {
        for other in others {
            let hits = hits(chunk, &[first, second, first, other, second]);
            assert_eq!(
                hits,
                [false, false, true, expected, true],
                "{chunk}: {other}"
            );
        }
    }
}

const VALUES: [&str; 7] = [
    "0",
    "-1.5e-3",
    "true",
    "\"\"",
    "\"\\u00e9\\ud83d\\ude00 é\"",
    "[]",
    "{\"a\":[{\"b\":null}]}",
];

/// The parser reads the two with white space, but does not count it as part of the value.
const INVALID: [&str; 14] = [
    " 1",
    "\t{}",
    "null",
    "",
    "01",
    "1.",
    "\"a",
    "\"\\x\"",
    "\"\\ud83d\"",
    "\"\u{1}\"",
    "[1,]",
    "{\"a\"}",
    "{\"$serde_json::private::RawValue\":\"1\"}",
    "nul",
];

#[test]
fn unknown_fields_are_holes_for_any_valid_value_but_null() {
    for chunk in [
        "{\"id\":\"a\",\"x\":$,\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}",
        "{\"id\":\"a\",\"choices\":[{\"index\":0,\"x\":$,\"delta\":{\"content\":\"a\"}}]}",
        "{\"id\":\"a\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\",\"x\": $}}]}",
        "{\"choices\":[{\"delta\":{\"reasoning_details\":$,\"reasoning\":\"a\"},\"index\":1}]}",
    ] {
        if !chunk.contains("details") {
            check(chunk, ["1", "\"2\""], &VALUES, &INVALID);
        }
        let first = hits(chunk, &["[1]", "[2]", "[3]"]);
        // The first reasoning text of a choice takes a slower path.
        assert_eq!(first, [false, false, true], "{chunk}");
    }
}

#[test]
fn values_with_the_form_of_an_earlier_one_are_valid_as_that_was() {
    let first = "{\"t\":\"a\",\"n\":[1,2],\"p\":-0.5}";
    let second = "{\"t\":\"b\",\"n\":[1],\"p\":1e-7}";
    let good = [
        "{\"t\":\"\\n\\\"\",\"n\":[9,8,70],\"p\":0}",
        "{\"t\":\"\\u00e9é\",\"n\":[1],\"p\":1}",
        "{\"t\":\"\",\"n\":[],\"p\":1}",
        "{\"t\":\"a\",\"n\":[1, 2],\"p\":\"1\"}",
        "{\"n\":1}",
    ];
    let bad = [
        "{\"t\":\"\\ud83d\",\"n\":[1],\"p\":1}",
        "{\"t\":\"\\x\",\"n\":[1],\"p\":1}",
        "{\"t\":\"\u{1}\",\"n\":[1],\"p\":1}",
        "{\"t\":\"a\",\"n\":[01],\"p\":1}",
        "{\"t\":\"a\",\"n\":[1,],\"p\":1}",
        "{\"t\":\"a\",\"n\":[1],\"p\":1.}",
        "{\"t\":\"a\",\"n\":[1],\"p\":}",
    ];
    for chunk in [
        "{\"x\":$,\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}",
        "{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\",\"x\":$}}]}",
    ] {
        check(chunk, [first, second], &good, &bad);
        let stream: Vec<u8> = [
            first,
            second,
            first,
            "{\"t\":\"?\",\"n\":[1],\"p\":1}",
            second,
        ]
        .map(|value| format!("data: {}\n\n", chunk.replace('$', value)))
        .concat()
        .bytes()
        .map(|byte| if byte == b'?' { 0xFF } else { byte })
        .collect();
        check_fast_paths(&stream, "invalid UTF-8");
    }
}

#[test]
fn x13_a_hole_accepts_no_deeper_nesting_than_the_parser() {
    let chunk = "{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\",\"x\":$}}]}";
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    let outer_depth = 4;
    let deepest = nested(crate::limits::MAX_JSON_DEPTH - outer_depth);
    let too_deep = nested(crate::limits::MAX_JSON_DEPTH - outer_depth + 1);
    check(chunk, ["1", "2"], &[&deepest], &[&too_deep]);
}

#[test]
fn e16_the_id_the_model_and_the_time_are_holes_for_values_of_their_type() {
    let names = ["\"\"", "\"é\"", "\"b\u{7f}\""];
    let long = format!("\"{}\"", "n".repeat(crate::limits::MAX_NAME_BYTES + 1));
    let wrong = ["null", "1", "[]", "\"\\u0061\"", "\"\u{1}\"", "\"", &long];
    for name in ["id", "model"] {
        let chunk = "{\"NAME\":$,\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}";
        check(
            &chunk.replace("NAME", name),
            ["\"a\"", "\"b\""],
            &names,
            &wrong,
        );
    }
    let chunk = "{\"created\":$,\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}";
    let wrong = [
        "null",
        "-1",
        "01",
        "1.5",
        "1e3",
        "\"3\"",
        "",
        "18446744073709551616",
    ];
    check(
        chunk,
        ["1", "2"],
        &["0", "30", "9223372036854775807"],
        &wrong,
    );
}

#[test]
fn u4_m7_usage_and_log_probabilities_are_holes_for_objects() {
    let chunk = "{\"usage\":$,\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}";
    let wrong = ["{}", "{ }", "null", "[]", "1", "{\"a\":1e999}", "{\"a\":}"];
    check(
        chunk,
        ["{\"a\":1}", "{\"a\":2}"],
        &["{\"b\":2}", "{\"a\":{\"b\":1e3}}"],
        &wrong,
    );
    let chunk = "{\"choices\":[{\"index\":0,\"logprobs\":$,\"delta\":{\"content\":\"a\"}}]}";
    let filled = ["{\"content\":[1]}", "{\"content\":[{\"token\":\"\\n\"}]}"];
    let good = ["{\"refusal\":null,\"tokens\":[ 1 ]}"];
    let wrong = [
        "null",
        "[]",
        "{}",
        "{\"content\":[]}",
        "{\"content\":[1],\"content\":[]}",
    ];
    check(chunk, filled, &good, &wrong);
}

#[test]
fn e21_c19_values_that_do_not_count_are_holes() {
    let chunk = "{\"choices\":[{\"index\":0,\"message\":$,\"delta\":{\"content\":\"a\"}}]}";
    check(
        chunk,
        ["{\"content\":\"a\"}", "{\"content\":\"ab\"}"],
        &["null", "1"],
        &["", "\"\\ud83d\""],
    );
    let chunk = "{\"choices\":[{\"index\":0,\"text\":$,\"delta\":{\"content\":\"a\"}}]}";
    check(
        chunk,
        ["\"a\"", "\"b\""],
        &["\"\"", "\"é\""],
        &["null", "\"\\ud83d\"", "1"],
    );
}

#[test]
fn c11_a_list_of_parts_makes_a_template() {
    let chunk =
        "{\"choices\":[{\"index\":0,\"delta\":{\"content\":[{\"type\":\"text\",\"text\":$}]}}]}";
    let hits_of = |other| hits(chunk, &["\"a\"", other]);
    assert_eq!(hits_of("\"b\\n\""), [false, true]);
    for other in [
        "\"\"",
        "null",
        "1",
        "\"\\ud83d\"",
        "[]",
        "\"b\",\"text\":\"c\"",
    ] {
        assert_eq!(hits_of(other), [false, false], "{other}");
    }
}

#[test]
fn a_text_with_escapes_makes_a_template() {
    let chunk = "{\"choices\":[{\"index\":0,\"delta\":{\"content\":$}}]}";
    assert_eq!(
        hits(chunk, &["\"\\u4e2d\"", "\"\\n\"", "\"a\""]),
        [false, true, true]
    );
}

#[test]
fn escapes_beside_the_text_and_in_joined_parts_are_no_part_of_a_hole() {
    for chunk in [
        "{\"id\":\"a\\/b\",\"model\":\"m\\/n\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"$\"}}]}",
        "{\"id\":\"a\\/b\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"$\",\"x\":\"\\n\"}}]}",
        "{\"choices\":[{\"index\":0,\"text\":\"c\\n\",\"delta\":{\"content\":\"$\"}}]}",
        "{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"c\\n\",\"content\":\"$\"}}]}",
        "{\"object\":\"chat\\u002echunk\",\"choices\":[{\"index\":0,\"delta\":{\"content\":[{\"type\":\"text\",\"text\":\"$\"},{\"type\":\"text\",\"text\":\"b\"}]}}]}",
    ] {
        for values in [["a\\n", "b", "\\\\c\\n"], ["a", "\\u00e9", "c"]] {
            // The comparison with `serde_json` inside is what counts: some of the chunks make no template.
            hits(chunk, &values);
        }
    }
}

#[test]
fn fields_of_the_envelope_that_another_chunk_changed_are_emitted_again() {
    let text = "{\"x\":1,\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}";
    let call = "{\"x\":2,\"choices\":[{\"index\":0,\"delta\":{\"refusal\":\"a\"}}]}";
    let stream: Vec<String> = [text, text, call, call, text, call, text, text]
        .iter()
        .map(|chunk| format!("data: {chunk}\n\n"))
        .collect();
    // Two updates where the field has changed.
    assert_eq!(check_fast_paths(stream.concat().as_bytes(), "x"), 8 + 5);
}

#[test]
fn chunks_without_a_text_make_a_template() {
    let call = "{\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":$}}]}}]}";
    for chunk in [
        "{\"choices\":[{\"index\":0,\"delta\":{\"content\":$}}]}",
        call,
    ] {
        assert_eq!(
            hits(
                chunk,
                &["\"\"", "\"\"", "\"\"", "\"a\"", "\"\"", "\"b\"", "null"]
            ),
            [false, false, true, false, true, true, false],
            "{chunk}"
        );
    }
    let named =
        "{\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\"}]}}]}";
    assert_eq!(
        hits(named, &["", ""]),
        [false, false],
        "an id is not a repetition"
    );
}
