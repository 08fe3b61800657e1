//! Tables of tolerated text.

use serde_json::Value as Json;

use super::*;

mod properties;

/// Reads a document that `serde_json` refuses, and checks the JSON that is written for it.
#[track_caller]
fn check(input: &str, expected: &str) {
    let node = read(input, 128).unwrap();
    assert!(
        serde_json::from_str::<Json>(input).is_err(),
        "not a tolerance: {input}"
    );
    assert!(!node.clean, "{input}");
    assert_eq!(node.raw, input);
    assert_eq!(node.to_json(), expected, "{input}");
    serde_json::from_str::<Json>(expected).unwrap();
}

#[track_caller]
fn check_string(input: &str, low: Option<u16>, text: &str, high: Option<u16>) {
    let node = read(input, 0).unwrap();
    let string = JsonString {
        text: text.into(),
        low,
        high,
    };
    assert_eq!(node.as_str(), Some(&string), "{input}");
    assert_eq!(string.is_empty(), input == r#""""#);
}

#[track_caller]
fn check_error(input: &str, expected: NodeError) {
    assert_eq!(read(input, 3).unwrap_err(), expected, "{input}");
}

#[test]
fn c14_half_a_character_is_kept_at_the_edges_of_a_string() {
    check_string(r#""""#, None, "", None);
    check_string(r#""A\ud83d""#, None, "A", Some(0xD83D));
    check_string(r#""\ude00B""#, Some(0xDE00), "B", None);
    check_string(r#""\uDE00\uD83D""#, Some(0xDE00), "", Some(0xD83D));
    check_string(r#""\ud83d""#, None, "", Some(0xD83D));
    check_string(r#""\ude00""#, Some(0xDE00), "", None);
    check_string(r#""\ude00\u0041\ud83d""#, Some(0xDE00), "A", Some(0xD83D));
}

#[test]
fn c14_half_a_character_elsewhere_is_replaced() {
    check_string(r#""\ud83dA""#, None, "\u{FFFD}A", None);
    check_string(r#""A\ude00""#, None, "A\u{FFFD}", None);
    check_string(r#""\ude00\ude00""#, Some(0xDE00), "\u{FFFD}", None);
    check_string(r#""\ud83d\ud83d""#, None, "\u{FFFD}", Some(0xD83D));
    check_string(
        r#""\ud83d\ud83d\ude00\ude00""#,
        None,
        "\u{FFFD}😀\u{FFFD}",
        None,
    );
    check_string(r#""\ud83d\d""#, None, "\u{FFFD}\\d", None);
    check_string(r#""\ud83d\n""#, None, "\u{FFFD}\n", None);
}

#[test]
fn c14_two_surrogate_halves_become_one_character() {
    check_string(r#""\ud83d\ude00""#, None, "😀", None);
    let node = read(r#""\ud83d\ude00""#, 0).unwrap();
    assert!(node.clean);
    assert_eq!(node.text().unwrap(), "😀");
}

#[test]
fn j17_lone_surrogates_are_written_as_replacement_characters() {
    check(r#"{"a":"\ude00x\ud83d"}"#, "{\"a\":\"\u{FFFD}x\u{FFFD}\"}");
    check(r#"{"\ud83d":1}"#, "{\"\u{FFFD}\":1}");
    assert_eq!(
        read(r#""\ude00x""#, 0).unwrap().text().unwrap(),
        "\u{FFFD}x"
    );
}

#[test]
fn j01_j02_raw_control_characters_are_kept_and_written_escaped() {
    check("{\"a\": \"x\ny\"}", r#"{"a":"x\ny"}"#);
    check(
        "[\"\r\t\0\u{b}\u{1b}\u{1f}\u{7f}\"]",
        "[\"\\r\\t\\u0000\\u000b\\u001b\\u001f\u{7f}\"]",
    );
    check("{\"\n\":1}", r#"{"\n":1}"#);
    assert_eq!(read("\"x\ny\"", 0).unwrap().text().unwrap(), "x\ny");
}

#[test]
fn j03_a_backslash_before_a_raw_newline_is_kept() {
    check("\"x\\\ny\"", r#""x\\\ny""#);
}

#[test]
fn j04_invalid_escapes_are_kept() {
    check(r#""\d+""#, r#""\\d+""#);
    check(r#""C:\Users\é""#, r#""C:\\Users\\é""#);
    check(r#""it\'s""#, r#""it\\'s""#);
    check(r#""\u12""#, r#""\\u12""#);
    check(r#""\u12é4\u""#, r#""\\u12é4\\u""#);
    check(r#""\u+123\U00e9""#, r#""\\u+123\\U00e9""#);
    check(
        r#""\"\\\/\b\f\n\r\t\u00E9\d""#,
        r#""\"\\/\u0008\u000c\n\r\té\\d""#,
    );
}

#[test]
fn m08_nan_and_infinities_are_numbers_without_a_value() {
    check("[NaN,Infinity,-Infinity,-1]", "[null,null,null,-1]");
    for input in [
        "NaN",
        "Infinity",
        "-Infinity",
        "1e999",
        "-1e999",
        r#""NaN""#,
        r#""inf""#,
    ] {
        let node = read(input, 0).unwrap();
        assert_eq!(node.as_f64_lenient(), None, "{input}");
        assert_eq!(
            node.as_u64_lenient()
                .map(drop)
                .or_else(|| node.as_i64_lenient().map(drop)),
            None
        );
    }
    assert_eq!(read("-9999.0", 0).unwrap().as_f64_lenient(), Some(-9999.0));
}

#[test]
fn j15_a_number_of_any_size_keeps_its_text() {
    for number in [
        "1e400",
        "-1e400",
        "12345678901234567890123",
        "0.10",
        "1E-7",
        &"9".repeat(400),
    ] {
        let input = format!("{{\"a\":{number}}}");
        let node = read(&input, 1).unwrap();
        assert!(node.clean, "{input}");
        assert_eq!(node.to_json(), input);
        assert_eq!(node.get("a").unwrap().value, Value::Number(number));
        let anew = format!("{{\"n\":NaN,\"a\":{number}}}");
        let expected = format!("{{\"n\":null,\"a\":{number}}}");
        assert_eq!(read(&anew, 1).unwrap().to_json(), expected);
    }
    let value = |raw: &str| to_value(raw).unwrap().to_string();
    assert_eq!(
        value(r#"{"a":1e400,"b":12345678901234567890123}"#),
        r#"{"a":null,"b":1.2345678901234568e+22}"#
    );
    assert_eq!(
        value(r#"[NaN,1e400,"\ud83d",0.10]"#),
        "[null,null,\"\u{FFFD}\",0.1]"
    );
}

#[test]
fn e26_the_last_of_duplicate_keys_counts_at_the_position_of_the_first() {
    let input = r#"{"a":1,"b":2,"a":3}"#;
    let node = read(input, 1).unwrap();
    assert!(node.clean);
    assert_eq!(node.to_json(), input);
    assert_eq!(node.get("a").unwrap().raw, "3");
    assert_eq!(node.get("c"), None);
    check(
        r#"{"a":NaN,"b":2,"\u0061":{"c":1,"c":2}}"#,
        r#"{"a":{"c":2},"b":2}"#,
    );
    check(r#"{"a":NaN,"b":1,"a":null}"#, r#"{"a":null,"b":1}"#);
    check(r#"{"a":null,"b":NaN,"a":2}"#, r#"{"b":null,"a":2}"#);
    let many: String = (0..40).map(|key| format!("\"{key}\":NaN,")).collect();
    let input = format!("{{{many}\"7\":1,\"7\":2}}");
    let node = read(&input, 1).unwrap();
    assert_eq!(node.as_object().unwrap().len(), 40);
    assert_eq!(node.get("7").unwrap().raw, "2");
}

#[test]
fn r07_tolerated_text_is_not_json_but_large_numbers_are() {
    for json in [r#"{"a":1e400,"a":"\ud83d"}"#, "[\"\u{7f}é\\u0001\"]", " 5 "] {
        assert!(read_json(json, 5).is_ok(), "{json}");
    }
    for other in [
        "NaN",
        "[-Infinity]",
        "{\"a\":\"\n\"}",
        "{\"\u{1}\":1}",
        r#"["\d"]"#,
        r#"{"a":NaN,"a":1}"#,
    ] {
        assert!(
            read(other, 5).is_ok() && read_json(other, 5).is_err(),
            "{other}"
        );
    }
}

#[test]
fn s28_a_prefix_ends_before_the_second_document() {
    let (node, used) = read_prefix(" {\"a\": [1 ]} {}", 2).unwrap();
    assert_eq!((node.raw, used), ("{\"a\": [1 ]}", 12));
    assert_eq!(
        node.get("a").and_then(Node::as_array).map(<[_]>::len),
        Some(1)
    );
    check_error("{}{}", NodeError::Syntax { offset: 2 });
    check_error("{} x", NodeError::Syntax { offset: 3 });
}

#[test]
fn nothing_else_is_tolerated() {
    let scalars =
        "+1 01 -01 .5 1.e5 1.} 1e} -x -NaN +Infinity nan Nul trUe 'a' /**/1 x \u{feff}1 \u{a0}1";
    let containers =
        "[1,] {,} {\"a\":1,} [,1] {a:1} ['a'] } ] [1]] [1} {\"a\":1] {1:2} {\"a\",1} {null:1}";
    let spaced = ["{\"a\" 1}", "[1 2]", "1 2", "\u{c}1", "[1, // one\n2]"];
    for input in scalars
        .split(' ')
        .chain(containers.split(' '))
        .chain(spaced)
    {
        let result = read(input, 9);
        assert!(
            matches!(result, Err(NodeError::Syntax { .. })),
            "{input}: {result:?}"
        );
    }
    check_error("[1,]", NodeError::Syntax { offset: 3 });
    check_error("[tru]", NodeError::Syntax { offset: 4 });
    check_error("[1.]", NodeError::Syntax { offset: 3 });
    check_error("[007]", NodeError::Syntax { offset: 2 });
}

#[test]
fn input_that_ends_inside_a_value_is_truncated() {
    for input in [
        "", " ", "-", "1.", "1e", "1e+", "tr", "-Inf", "\"", "\"\\", "\"\\u12", "[1", "[1,",
        "{\"a\"", "{\"a\":",
    ] {
        check_error(
            input,
            NodeError::Truncated {
                offset: input.len(),
            },
        );
    }
}

#[test]
fn nesting_one_level_beyond_the_limit_is_refused() {
    assert!(read("[[{}]]", 3).is_ok());
    check_error("[[{\"a\":[]}]]", NodeError::TooDeep { offset: 7 });
    assert_eq!(read("[]", 0), Err(NodeError::TooDeep { offset: 0 }));
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    assert_eq!(
        read(&nested(513), usize::MAX),
        Err(NodeError::TooDeep { offset: 512 })
    );
    assert!(read(&nested(127), 512).unwrap().clean);
    check(
        &nested(128),
        &format!("{}null{}", "[".repeat(127), "]".repeat(127)),
    );
}

#[test]
fn the_deepest_tree_fits_a_small_stack() {
    let work = || {
        let input = "{\"a\":[".repeat(256) + "NaN" + &"]}".repeat(256);
        read(&input, 512).unwrap().to_json().into_owned()
    };
    // Frames are largest without optimization. A thread of the standard library has a stack of 2 MiB.
    let small = std::thread::Builder::new().stack_size(256 << 10);
    let json = small.spawn(work).unwrap().join().unwrap();
    serde_json::from_str::<Json>(&json).unwrap();
}

#[test]
fn the_private_key_of_serde_json_is_left_out() {
    check(
        r#"{"$serde_json::private::RawValue":1,"b":2}"#,
        r#"{"b":2}"#,
    );
    assert!(
        read(r#"{"b":2,"$serde_json::private::RawValue":1}"#, 1)
            .unwrap()
            .clean
    );
}

#[test]
fn text_without_escapes_is_borrowed() {
    for input in [r#""abc""#, "\"a\nb\"", r#""\ude00abc\ud83d""#] {
        let node = read(input, 0).unwrap();
        assert!(
            matches!(node.as_str().unwrap().text, Cow::Borrowed(_)),
            "{input}"
        );
    }
}

#[test]
fn accessors_of_another_type_return_none() {
    let node = read("[null,true,1,\"a\",{}]", 2).unwrap();
    let [null, truth, number, string, object] = node.as_array().unwrap() else {
        panic!("five items")
    };
    assert!(null.is_null() && !number.is_null());
    assert_eq!((truth.as_bool(), null.as_bool()), (Some(true), None));
    assert_eq!((string.text().as_deref(), truth.text()), (Some("a"), None));
    assert_eq!(
        (object.as_object().map(<[_]>::len), object.as_array()),
        (Some(0), None)
    );
    assert_eq!(
        (
            node.get("a"),
            node.as_object(),
            string.as_f64_lenient(),
            null.as_u64_lenient()
        ),
        (None, None, None, None)
    );
}

#[test]
fn integers_are_read_in_any_notation() {
    let table = [
        ("5", Some(5), Some(5)),
        (r#""5""#, Some(5), Some(5)),
        (r#"" 5 ""#, Some(5), Some(5)),
        ("5.0", Some(5), Some(5)),
        ("1.7e9", Some(1_700_000_000), Some(1_700_000_000)),
        ("1200e-2", Some(12), Some(12)),
        ("0.0e99999999999999999999", Some(0), Some(0)),
        ("-0", Some(0), Some(0)),
        ("-1", None, Some(-1)),
        (r#""-1.0""#, None, Some(-1)),
        ("1.5", None, None),
        ("1e-1", None, None),
        (
            "9007199254740993.0",
            Some(9_007_199_254_740_993),
            Some(9_007_199_254_740_993),
        ),
        ("18446744073709551615", Some(u64::MAX), None),
        ("18446744073709551616", None, None),
        ("-9223372036854775808", None, Some(i64::MIN)),
        ("-9223372036854775809", None, None),
        ("1e99999999999999999999", None, None),
        (r#""+5""#, None, None),
        (r#""5x""#, None, None),
        (r#""5\ud83d""#, None, None),
        (r#""""#, None, None),
    ];
    for (input, unsigned, signed) in table {
        let node = read(input, 0).unwrap();
        assert_eq!(
            (node.as_u64_lenient(), node.as_i64_lenient()),
            (unsigned, signed),
            "{input}"
        );
    }
    assert_eq!(read(r#"" 1.5 ""#, 0).unwrap().as_f64_lenient(), Some(1.5));
}
