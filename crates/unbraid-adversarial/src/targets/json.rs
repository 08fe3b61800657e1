//! Arguments: their verdict, partial value, fields and repairs agree with `serde_json`, for every split.

use serde_json::{Value, value::RawValue};
use unbraid_core::json::{
    Field, FieldError, FieldState, Partial, Pointer, Repair, Verdict, check, repair,
};
use unbraid_testkit::cut::Rng;

/// Reads a text with every reader of `json`. The first byte seeds the split and selects the repairs.
///
/// # Panics
///
/// Panics if an invariant is violated.
pub fn json(input: &[u8]) {
    let Some((seed, text)) = input.split_first() else {
        return;
    };
    let text = &*String::from_utf8_lossy(text);
    let cuts = cuts(text, u64::from(*seed));
    check_verdict(text);
    prefixes(text, &cuts);
    for pointer in POINTERS {
        field(text, pointer, &cuts);
    }
    first_key(text, &cuts);
    for allowed in [subset(*seed), Repair::ALL, Repair::NONE] {
        repaired(text, allowed);
    }
}

const POINTERS: [&str; 5] = ["", "/a", "/answer", "/0/a", "/a/1"];

/// Splits a text into fragments.
fn cuts(text: &str, seed: u64) -> Vec<&str> {
    let mut rng = Rng::new(seed);
    let mut fragments = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let wanted = rng.below(9);
        let end = (wanted..=rest.len()).find(|end| rest.is_char_boundary(*end));
        let (fragment, tail) = rest.split_at(end.unwrap_or(rest.len()));
        fragments.push(fragment);
        rest = tail;
    }
    fragments
}

/// Whether the text has the syntax of JSON, regardless of the size of numbers, lone surrogates and the depth.
fn is_json(text: &str) -> bool {
    serde_json::from_str::<&RawValue>(text).is_ok()
}

fn check_verdict(text: &str) {
    let verdict = check(text);
    match verdict {
        Verdict::Complete => assert!(is_json(text), "complete, but not JSON: {text:?}"),
        Verdict::TooDeep { offset } => {
            assert!(text.is_char_boundary(offset));
            assert!(serde_json::from_str::<Value>(text).is_err(), "{text:?}");
        }
        Verdict::Invalid { offset } => {
            assert!(text.is_char_boundary(offset) && offset < text.len());
            assert!(!is_json(text), "JSON, but {verdict:?}: {text:?}");
        }
        // A lone surrogate is valid syntax, but not valid text.
        Verdict::Repaired => assert!(
            serde_json::from_str::<Value>(text).is_err(),
            "JSON, but {verdict:?}: {text:?}"
        ),
        Verdict::EmptyAsObject | Verdict::Truncated | Verdict::Concatenated { .. } => {
            assert!(!is_json(text), "JSON, but {verdict:?}: {text:?}")
        }
        _ => {}
    }
}

/// The partial value depends on the received text, not on its fragments. At the end it is the value that `serde_json` reads.
fn prefixes(text: &str, fragments: &[&str]) {
    let mut partial = Partial::default();
    let mut received = String::new();
    for fragment in fragments {
        partial.feed(fragment);
        received.push_str(fragment);
        let mut at_once = Partial::default();
        at_once.feed(&received);
        assert_eq!(
            partial.verdict(),
            at_once.verdict(),
            "{received:?} of {text:?}"
        );
        if received.len() < LONG {
            assert_eq!(partial.value(), at_once.value(), "{received:?} of {text:?}");
        }
        check_prefix(text, &received);
    }
    assert_eq!(partial.finish(), check(text), "{text:?}");
    if let Ok(value) = serde_json::from_str::<Value>(text) {
        assert_eq!(partial.value(), Some(value), "{text:?}");
        assert!(
            partial.is_complete() || check(text) == Verdict::Repaired,
            "{text:?}"
        );
    }
}

/// Above this length the values are compared only at the end, because comparing all of them is quadratic.
const LONG: usize = 300;

/// A prefix of JSON is not invalid.
fn check_prefix(text: &str, received: &str) {
    if check(text) == Verdict::Complete {
        let verdict = check(received);
        let is_prefix = matches!(
            verdict,
            Verdict::Complete | Verdict::Truncated | Verdict::EmptyAsObject
        );
        assert!(is_prefix, "{received:?} of {text:?} is {verdict:?}");
    }
}

fn read_field<'p>(pointer: &Pointer, fragments: impl IntoIterator<Item = &'p str>) -> FieldText {
    let mut field = Field::new(pointer.clone());
    let mut text = String::new();
    for fragment in fragments {
        field.feed(fragment, &mut |fragment| {
            assert!(!fragment.is_empty(), "an empty delta");
            text.push_str(fragment);
        });
    }
    (text, field.state(), field.finish())
}

/// The text of a field, its state, and its result.
type FieldText = (String, FieldState, Result<(), FieldError>);

fn field(text: &str, pointer: &str, fragments: &[&str]) {
    let Ok(pointer) = Pointer::parse(pointer) else {
        return;
    };
    let unsplit = read_field(&pointer, [text]);
    let cut = read_field(&pointer, fragments.iter().copied());
    assert_eq!(cut, unsplit, "{pointer:?} in {text:?}");
    let received: String = fragments
        .iter()
        .take(fragments.len() / 2)
        .copied()
        .collect();
    let (beginning, ..) = read_field(&pointer, [&*received]);
    assert!(unsplit.0.starts_with(&beginning), "{pointer:?} in {text:?}");
    assert_eq!(unsplit.1 == FieldState::Done, unsplit.2.is_ok(), "{text:?}");
    // Serialized again without duplicate keys, for which `field` reads the first value and `value` the last.
    if let Ok(value) = serde_json::from_str::<Value>(text) {
        agrees(&value, &pointer);
    }
}

fn agrees(value: &Value, pointer: &Pointer) {
    let text = value.to_string();
    let (read, _, end) = read_field(pointer, [&*text]);
    match value.pointer(pointer.as_str()) {
        Some(Value::String(string)) => {
            assert_eq!((&read, end), (string, Ok(())), "{pointer:?} in {text}");
        }
        Some(_) => assert_eq!(end, Err(FieldError::NotAString), "{pointer:?} in {text}"),
        None => assert_eq!(end, Err(FieldError::Absent), "{pointer:?} in {text}"),
    }
}

/// Reads the first key of a text as a field.
fn first_key(text: &str, fragments: &[&str]) {
    let mut partial = Partial::default();
    partial.feed(text);
    let value = partial.value().unwrap_or_default();
    let key = value.as_object().and_then(|object| object.keys().next());
    if let Some(key) = key {
        let key = key.replace('~', "~0").replace('/', "~1");
        field(text, &format!("/{key}"), fragments);
    }
}

const REPAIRS: [Repair; 5] = [
    Repair::CONTROLS,
    Repair::ESCAPES,
    Repair::LITERAL_NEWLINES,
    Repair::CLOSE,
    Repair::LONE_SURROGATES,
];

fn subset(bits: u8) -> Repair {
    let chosen = REPAIRS
        .iter()
        .enumerate()
        .filter(|(bit, _)| bits >> bit & 1 == 1);
    chosen.fold(Repair::NONE, |all, (_, repair)| all | *repair)
}

/// Repairs are applied only where they are allowed and needed, and a repaired text is not repaired again.
fn repaired(text: &str, allowed: Repair) {
    let repaired = repair(text, allowed);
    assert!(allowed.contains(repaired.applied), "{text:?}");
    assert_eq!(
        repaired.applied.is_empty(),
        repaired.text == text,
        "{text:?}"
    );
    if serde_json::from_str::<Value>(text).is_ok() {
        assert_eq!(repaired.text, text, "JSON was repaired");
    }
    let again = repair(&repaired.text, allowed);
    assert_eq!(again.text, repaired.text, "repaired twice: {text:?}");
    if check(text) == Verdict::Repaired && allowed.contains(Repair::CONTROLS) {
        let verdict = check(&repaired.text);
        let is_readable = matches!(verdict, Verdict::Complete | Verdict::Repaired);
        assert!(is_readable, "{text:?} became {verdict:?}");
    }
}
