//! Measures the nesting of a JSON text without parsing it.

use memchr::memchr2_iter;

/// Whether an array or object is nested deeper than `max`. The outermost one has depth 1.
pub(crate) fn is_deeper_than(text: &str, max: usize) -> bool {
    // Most texts have fewer brackets in total than are allowed in depth. Searching for them is faster than the loop below.
    if memchr2_iter(b'{', b'[', text.as_bytes()).nth(max).is_none() {
        return false;
    }
    let (mut depth, mut in_string, mut is_escaped) = (0_usize, false, false);
    for byte in text.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = in_string,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => {
                depth += 1;
                if depth > max {
                    return true;
                }
            }
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::is_deeper_than;

    #[track_caller]
    fn check(text: &str, depth: usize) {
        assert!(
            !is_deeper_than(text, depth),
            "{text} is not deeper than {depth}"
        );
        assert!(
            depth == 0 || is_deeper_than(text, depth - 1),
            "{text} is {depth} deep"
        );
    }

    #[test]
    fn only_brackets_outside_strings_count() {
        check("1", 0);
        check("[]", 1);
        check("[[],{},[[]]]", 3);
        check("{\"[[[\":[\"\\\"[{{{\"]}", 2);
    }
}
