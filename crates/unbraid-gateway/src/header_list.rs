//! Lists and parameters in the values of headers, where a quoted text may contain the separator (RFC 9110, 5.6).

/// The parts of a value between the separators outside of quoted texts.
pub(crate) fn split(value: &str, separator: char) -> impl Iterator<Item = &str> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    value.split(move |character| {
        let was_escaped = std::mem::take(&mut is_escaped);
        match character {
            '\\' if is_quoted && !was_escaped => is_escaped = true,
            '"' if !was_escaped => is_quoted = !is_quoted,
            _ => {}
        }
        character == separator && !is_quoted
    })
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn a_separator_inside_quotes_separates_nothing() {
        for (value, parts) in [
            ("", &[""][..]),
            ("a, b", &["a", " b"]),
            (r#"a="x,y", b"#, &[r#"a="x,y""#, " b"]),
            (r#"a="x\",y", b"#, &[r#"a="x\",y""#, " b"]),
            (r#"a="x\\", b"#, &[r#"a="x\\""#, " b"]),
            (r#"a\, b"#, &[r"a\", " b"]),
            (r#"a", b"#, &[r#"a", b"#]),
        ] {
            assert_eq!(split(value, ',').collect::<Vec<_>>(), parts, "{value}");
        }
    }
}
