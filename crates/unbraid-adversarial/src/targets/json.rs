//! Arguments: judged, shown, typed and repaired, they are what `serde_json` says, at every cut.

use serde_json::{Value, value::RawValue};
use unbraid_core::json::{
    Field, FieldError, FieldState, Partial, Pointer, Repair, Verdict, check, repair,
};
use unbraid_testkit::cut::Rng;

/// Reads a text in every way there is. The first byte seeds the cuts and chooses the repairs.
///
/// # Panics
///
/// Panics where a promise is broken.
pub fn json(input: &[u8]) {
    let Some((seed, text)) = input.split_first() else {
        return;
    };
    let text = &*String::from_utf8_lossy(text);
    let cuts = cuts(text, u64::from(*seed));
    judged(text);
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

/// A text in pieces.
fn cuts(text: &str, seed: u64) -> Vec<&str> {
    let mut rng = Rng::new(seed);
    let mut pieces = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let wanted = rng.below(9);
        let at = (wanted..=rest.len()).find(|at| rest.is_char_boundary(*at));
        let (piece, tail) = rest.split_at(at.unwrap_or(rest.len()));
        pieces.push(piece);
        rest = tail;
    }
    pieces
}

/// `serde_json` reads the text as JSON, whatever a number's size, surrogates' mates or the depth.
fn is_json(text: &str) -> bool {
    serde_json::from_str::<&RawValue>(text).is_ok()
}

fn judged(text: &str) {
    let judged = check(text);
    match judged {
        Verdict::Complete => assert!(is_json(text), "complete, but no JSON: {text:?}"),
        Verdict::TooDeep { offset } => {
            assert!(text.is_char_boundary(offset));
            assert!(serde_json::from_str::<Value>(text).is_err(), "{text:?}");
        }
        Verdict::Invalid { offset } => {
            assert!(text.is_char_boundary(offset) && offset < text.len());
            assert!(!is_json(text), "JSON, but {judged:?}: {text:?}");
        }
        // Half a surrogate pair is JSON by its form, but no text.
        Verdict::Repaired => assert!(
            serde_json::from_str::<Value>(text).is_err(),
            "JSON, but {judged:?}: {text:?}"
        ),
        Verdict::EmptyAsObject | Verdict::Truncated | Verdict::Concatenated { .. } => {
            assert!(!is_json(text), "JSON, but {judged:?}: {text:?}")
        }
        _ => {}
    }
}

/// What is shown of a text depends on what has come, and not on how; in the end it is what `serde_json` reads.
fn prefixes(text: &str, pieces: &[&str]) {
    let mut partial = Partial::default();
    let mut come = String::new();
    for piece in pieces {
        partial.feed(piece);
        come.push_str(piece);
        let mut at_once = Partial::default();
        at_once.feed(&come);
        assert_eq!(partial.verdict(), at_once.verdict(), "{come:?} of {text:?}");
        if come.len() < LONG {
            assert_eq!(partial.value(), at_once.value(), "{come:?} of {text:?}");
        }
        begins(text, &come);
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

/// Beyond this length the values are compared at the end only: comparing all of them is quadratic.
const LONG: usize = 300;

/// The beginning of JSON is no garbage.
fn begins(text: &str, come: &str) {
    if check(text) == Verdict::Complete {
        let judged = check(come);
        let fits = matches!(
            judged,
            Verdict::Complete | Verdict::Truncated | Verdict::EmptyAsObject
        );
        assert!(fits, "{come:?} of {text:?} is {judged:?}");
    }
}

fn typed<'p>(pointer: &Pointer, pieces: impl IntoIterator<Item = &'p str>) -> Typed {
    let mut field = Field::new(pointer.clone());
    let mut text = String::new();
    for piece in pieces {
        field.feed(piece, &mut |piece| {
            assert!(!piece.is_empty(), "an empty piece");
            text.push_str(piece);
        });
    }
    (text, field.state(), field.finish())
}

/// What was typed of a field, its state, and its end.
type Typed = (String, FieldState, Result<(), FieldError>);

fn field(text: &str, pointer: &str, pieces: &[&str]) {
    let Ok(pointer) = Pointer::parse(pointer) else {
        return;
    };
    let whole = typed(&pointer, [text]);
    let cut = typed(&pointer, pieces.iter().copied());
    assert_eq!(cut, whole, "{pointer:?} in {text:?}");
    let come: String = pieces.iter().take(pieces.len() / 2).copied().collect();
    let (begun, ..) = typed(&pointer, [&*come]);
    assert!(whole.0.starts_with(&begun), "{pointer:?} in {text:?}");
    assert_eq!(whole.1 == FieldState::Done, whole.2.is_ok(), "{text:?}");
    // Written anew, so that no key occurs twice: of such the field is the first, and the value the last.
    if let Ok(value) = serde_json::from_str::<Value>(text) {
        agrees(&value, &pointer);
    }
}

fn agrees(value: &Value, pointer: &Pointer) {
    let text = value.to_string();
    let (typed, _, end) = typed(pointer, [&*text]);
    match value.pointer(pointer.as_str()) {
        Some(Value::String(string)) => {
            assert_eq!((&typed, end), (string, Ok(())), "{pointer:?} in {text}");
        }
        Some(_) => assert_eq!(end, Err(FieldError::NotAString), "{pointer:?} in {text}"),
        None => assert_eq!(end, Err(FieldError::Absent), "{pointer:?} in {text}"),
    }
}

/// The first key that a text has, whatever it is called.
fn first_key(text: &str, pieces: &[&str]) {
    let mut partial = Partial::default();
    partial.feed(text);
    let value = partial.value().unwrap_or_default();
    let key = value.as_object().and_then(|object| object.keys().next());
    if let Some(key) = key {
        let key = key.replace('~', "~0").replace('/', "~1");
        field(text, &format!("/{key}"), pieces);
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
        .filter(|(at, _)| bits >> at & 1 == 1);
    chosen.fold(Repair::NONE, |all, (_, repair)| all | *repair)
}

/// Repairs are made where they are allowed and needed, and what was repaired is not repaired again.
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
        let judged = check(&repaired.text);
        let fits = matches!(judged, Verdict::Complete | Verdict::Repaired);
        assert!(fits, "{text:?} became {judged:?}");
    }
}
