//! Checks raw JSON without parsing it.

/// Whether raw JSON may hold what `serde_json` accepts as raw JSON but not as a value: half a surrogate pair, or its
/// own private name.
///
/// It may be true for a whole pair, which then only takes a slower path. A number of any size is not doubtful, because
/// raw JSON has room for it.
pub(crate) fn is_doubtful(raw: &str) -> bool {
    let bytes = raw.as_bytes();
    // Each of the searches below costs more than this one, and most JSON has neither of the two.
    if memchr::memchr2(b'\\', b'$', bytes).is_none() {
        return false;
    }
    let surrogate = || {
        memchr::memmem::find_iter(bytes, b"\\u")
            .any(|offset| matches!(bytes.get(offset + 2), Some(b'd' | b'D')))
    };
    // The name begins with a dollar sign, which may be escaped.
    let private_name = || {
        let has = |needle: &str| memchr::memmem::find(bytes, needle.as_bytes()).is_some();
        has("\"$serde_json") || has("\"\\u0024")
    };
    surrogate() || private_name()
}

/// Whether more than `max` digits follow one another.
pub(crate) fn has_more_digits(bytes: &[u8], max: usize) -> bool {
    // Of that many bytes in a row, one has such a position, so few bytes are looked at.
    let mut positions = (max..bytes.len()).step_by(max + 1);
    positions.any(|position| {
        let (before, after) = bytes.split_at_checked(position).unwrap_or_default();
        let after = after.iter().take_while(|byte| byte.is_ascii_digit());
        let before = before.iter().rev().take_while(|byte| byte.is_ascii_digit());
        match after.count() {
            0 => false,
            digits => digits + before.count() > max,
        }
    })
}

/// Whether raw JSON may hold a number beyond the largest `f64`. It may be true for a large exponent that is in range.
pub(crate) fn may_overflow(raw: &str) -> bool {
    const MAX_DIGITS: usize = 300; // the largest `f64` has 309 digits
    let bytes = raw.as_bytes();
    let next = bytes.get(1..).unwrap_or_default();
    let is_exponent =
        |(digit, next): (&u8, &u8)| digit.is_ascii_digit() & matches!(next, b'e' | b'E');
    let exponent = || {
        // The names of most fields have the letter. Without an early exit, the compiler vectorizes this loop.
        bytes
            .iter()
            .zip(next)
            .fold(false, |any, pair| any | is_exponent(pair))
    };
    let large_exponent = || {
        memchr::memchr2_iter(b'e', b'E', bytes).any(|offset| {
            let before = offset.checked_sub(1).and_then(|before| bytes.get(before));
            let after = bytes.get(offset + 1..).unwrap_or_default();
            let digits = after.strip_prefix(b"+").unwrap_or(after);
            before.is_some_and(u8::is_ascii_digit)
                && digits.iter().take(3).filter(|b| b.is_ascii_digit()).count() == 3
        })
    };
    (exponent() && large_exponent()) || has_more_digits(bytes, MAX_DIGITS)
}

#[cfg(test)]
mod tests {
    use unbraid_testkit::cut::Rng;

    use super::has_more_digits;

    #[test]
    fn more_digits_than_a_limit_are_found_wherever_they_are() {
        let mut rng = Rng::new(32);
        let mut found = 0;
        for _ in 0..50_000 {
            let max = 1 + rng.below(6);
            let text: String = (0..rng.below(40))
                .map(|_| if rng.chance(0.8) { '7' } else { 'x' })
                .collect();
            let has_run = text.split('x').any(|run| run.len() > max);
            found += usize::from(has_run);
            assert_eq!(
                has_more_digits(text.as_bytes(), max),
                has_run,
                "{text} {max}"
            );
        }
        assert!((10_000..45_000).contains(&found), "{found}");
    }
}
