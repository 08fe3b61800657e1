use crate::{
    json::{
        Verdict,
        scan::Scanner,
        token::{Container, Token, TokenListener},
    },
    limits::MAX_ARGUMENT_DEPTH,
};

/// Records the tokens, with the parts of each text joined.
#[derive(Debug, Default)]
struct Notes(String);

impl TokenListener for Notes {
    fn token(&mut self, token: Token<'_>) {
        let note = match token {
            Token::Open(Container::Array) => "[",
            Token::Open(Container::Object) => "{",
            Token::Close => ")",
            Token::Key => "k<",
            Token::String => "s<",
            Token::KeyEnd | Token::StringEnd => ">",
            Token::Text("") | Token::NumberText("") => panic!("an empty fragment"),
            Token::Text(text) | Token::NumberText(text) => text,
            Token::NumberEnd => "#",
            Token::Literal(literal) => literal.as_str(),
            Token::Placeholder => "!",
        };
        self.0.push_str(note);
    }
}

fn scan(fragments: &[&str]) -> (String, Verdict) {
    let (mut scanner, mut notes) = (Scanner::default(), Notes::default());
    for fragment in fragments {
        scanner.feed(fragment, &mut notes);
    }
    (notes.0, scanner.verdict())
}

/// Checks that the tokens do not depend on the fragments.
#[track_caller]
fn assert_case(text: &str, tokens: &str) {
    let complete = scan(&[text]);
    assert_eq!(complete.0, tokens, "{text}");
    for (head, tail) in splits(text) {
        for (middle, tail) in splits(tail) {
            assert_eq!(
                scan(&[head, middle, tail]),
                complete,
                "{head}|{middle}|{tail}"
            );
        }
    }
}

fn splits(text: &str) -> impl Iterator<Item = (&str, &str)> {
    (0..=text.len()).filter_map(|at| text.split_at_checked(at))
}

#[test]
fn tokens_are_emitted_as_text_arrives() {
    assert_case("", "");
    assert_case(" [ ] ", "[)");
    assert_case("{ }", "{)");
    assert_case("[[],{},1 , 2]", "[[){)1#2#)");
    assert_case(
        "{\"a\" : {\"b\":[null]} , \"c\":\"d\"}",
        "{k<a>{k<b>[null))k<c>s<d>)",
    );
    assert_case("{\"\":\"\"}", "{k<>s<>)");
}

#[test]
fn j19_words_end_only_when_delimited() {
    assert_case("[12", "[12");
    assert_case("[12 ", "[12#");
    assert_case("[-0.5e+10,true", "[-0.5e+10#");
    assert_case("[true]", "[true)");
    assert_case("[fals", "[");
    assert_case("12", "12");
    assert_case("12\n", "12#");
}

#[test]
fn escapes_are_decoded_and_surrogate_halves_held_back() {
    assert_case(r#"["\"\\\/\b\f\n\r\t"]"#, "[s<\"\\/\u{8}\u{c}\n\r\t>)");
    assert_case(r#"["\u00e9\u4E2d"]"#, "[s<é中>)");
    assert_case(r#"["x\u00"#, "[s<x");
    assert_case(r#"["x\"#, "[s<x");
    assert_case(r#"["\ud83d\ude00"]"#, "[s<😀>)");
    assert_case(r#"["\ud83d"#, "[s<");
    assert_case(r#"["\ud83d"]"#, "[s<\u{FFFD}>)");
    assert_case(r#"["\ud83dx\ude00"]"#, "[s<\u{FFFD}x\u{FFFD}>)");
    assert_case(r#"["\ud83d\ud83d\ude00\n"]"#, "[s<\u{FFFD}😀\n>)");
    assert_case(r#"["\ud83d\n"]"#, "[s<\u{FFFD}\n>)");
    assert_case(r#"{"\ud83d":1}"#, "{k<\u{FFFD}>1#)");
}

#[test]
fn j1_to_j3_raw_controls_are_kept() {
    assert_case("[\"a\nb\r\t\0\u{1b}\"]", "[s<a\nb\r\t\0\u{1b}>)");
    assert_case("[\"a\\\nb\"]", "[s<a\\\nb>)");
    assert_case("{\"a\nb\":1}", "{k<a\nb>1#)");
}

#[test]
fn an_error_ends_the_scan() {
    assert_case("[1,]", "[1#");
    assert_case("[1}", "[1#");
    assert_case("{\"a\":1]", "{k<a>1#");
    assert_case("{]", "{");
    assert_case("{,", "{");
    assert_case("{\"a\",1}", "{k<a>");
    assert_case("[\"\\d\",2]", "[s<");
    assert_case("[\"\\u00g0\"]", "[s<");
    assert_case("[truefalse]", "[");
    assert_case("[nul]", "[");
    assert_case("[01]", "[0");
    assert_case("[1.]", "[1.");
    assert_case("[\u{a0}]", "[");
}

#[test]
fn further_values_and_placeholders_are_emitted() {
    assert_case("{}{\"a\":1}", "{)!{k<a>1#)");
    assert_case("{} 5 {}", "{)!5#{)");
    assert_case("{ }{}", "{){)");
    assert_case("{}", "{)");
    assert_case("[]{}{}", "[){){)");
    assert_case("1\"x\"", "1#s<x>");
}

#[test]
fn j16_depth_is_bounded() {
    let deep = "[".repeat(MAX_ARGUMENT_DEPTH);
    assert_eq!(scan(&[&deep]), (deep.clone(), Verdict::Truncated));
    let deeper = format!("{deep}{{");
    let offset = MAX_ARGUMENT_DEPTH;
    assert_eq!(scan(&[&deeper]), (deep, Verdict::TooDeep { offset }));
    // Siblings do not add depth.
    let flat = format!("[{}0]", "[],{},".repeat(500));
    assert_eq!(scan(&[&flat]).1, Verdict::Complete);
}

#[test]
fn the_scanner_keeps_no_text() {
    // A small `Copy` type holds no text, so a fragment costs time in proportion to its own length (J20).
    fn is_copy<T: Copy>() {}
    is_copy::<Scanner>();
    assert!(size_of::<Scanner>() <= 112, "{}", size_of::<Scanner>());
}
