use crate::json::{Pointer, PointerError};

/// The reference tokens as keys, with the positions of those that have one.
#[track_caller]
fn assert_case(pointer: &str, expected: &[(&str, Option<usize>)]) {
    let parsed = Pointer::parse(pointer).unwrap();
    let mut steps = Vec::new();
    while let Some(step) = parsed.token(steps.len()) {
        steps.push((&*step.key, step.index));
    }
    assert_eq!(steps, expected, "{pointer}");
    assert_eq!(parsed.to_string(), pointer);
}

#[test]
fn reference_tokens_are_unescaped() {
    assert_case("", &[]);
    assert_case("/", &[("", None)]);
    assert_case("/a//b", &[("a", None), ("", None), ("b", None)]);
    assert_case(
        "/a~1b/m~0n/~01",
        &[("a/b", None), ("m~n", None), ("~1", None)],
    );
    assert_case("/é \"\\", &[("é \"\\", None)]);
}

#[test]
fn positions_have_no_leading_zero() {
    assert_case("/0/10", &[("0", Some(0)), ("10", Some(10))]);
    assert_case(
        "/00/01/-1/-/1x",
        &[
            ("00", None),
            ("01", None),
            ("-1", None),
            ("-", None),
            ("1x", None),
        ],
    );
    assert_case(
        "/99999999999999999999999",
        &[("99999999999999999999999", None)],
    );
}

#[test]
fn an_invalid_pointer_is_refused_with_a_reason() {
    assert_eq!(Pointer::parse("a"), Err(PointerError::NoSlash));
    assert_eq!("a/b".parse::<Pointer>(), Err(PointerError::NoSlash));
    assert_eq!(
        Pointer::parse("/a~"),
        Err(PointerError::Tilde { offset: 2 })
    );
    assert_eq!(
        Pointer::parse("/~0~x"),
        Err(PointerError::Tilde { offset: 3 })
    );
}
