//! Keys in the path of an address, as some proxies have them.

/// How long a run of letters and digits is that no name of a model, a project or a region has.
const MIXED_RUN: usize = 12;

/// The same for letters alone. Gemini's `streamGenerateContent` has 21.
const LETTER_RUN: usize = 24;

/// Whether a segment of a path looks like a key. A word must not: it would be replaced in every message that contains it.
///
/// Names of models and deployments are made of words and numbers with separators (`gpt-4o-mini-2024-07-18`), and keys are not.
pub(super) fn may_be_key(segment: &str) -> bool {
    let mut runs = segment.split(|c: char| !c.is_ascii_alphanumeric());
    segment.starts_with("sk-") || is_uuid(segment) || runs.any(is_random)
}

fn is_random(run: &str) -> bool {
    let has_digit = run.bytes().any(|byte| byte.is_ascii_digit());
    let has_letter = run.bytes().any(|byte| byte.is_ascii_alphabetic());
    match (has_letter, has_digit) {
        (true, true) => run.len() >= MIXED_RUN,
        (true, false) => run.len() >= LETTER_RUN,
        (false, _) => false, // a number, such as that of a project
    }
}

fn is_uuid(segment: &str) -> bool {
    let is_of_uuid = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-';
    segment.len() == 36 && segment.bytes().all(is_of_uuid)
}
