//! What has arrived of a text, to compare it with the whole that some providers send after its fragments (D13).

use std::borrow::Cow;

use crate::Fragment;

/// The length and a checksum of a text. The text itself is not kept.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen {
    bytes: usize,
    checksum: crc32fast::Hasher,
    /// The first half of a character, at the end of the text.
    high: Option<u16>,
    /// What only a whole text has brought, while fragments of it may still come.
    ahead: String,
    /// Whether a complete value has arrived.
    is_complete: bool,
    /// How much of that fragments have repeated. It is removed at the end: each removal would move the rest.
    repeated: usize,
    /// The second half of the last character of it, if fragments have repeated only the first one.
    low_ahead: Option<u16>,
}

/// How much of a whole text is kept for fragments that come after it.
const MAX_AHEAD: usize = 64 * 1024;

/// What a whole text has beyond its fragments.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Rest<'t> {
    /// Nothing: they are equal.
    Nothing,
    /// The end of the text, which was lost.
    Missing(Fragment<'t>),
    /// The fragments are not its start.
    Differs,
}

impl Seen {
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes == 0 && self.high.is_none()
    }

    /// Adds the next fragment. A half without its other half counts as U+FFFD, which the choice makes of it, too.
    pub(crate) fn push(&mut self, fragment: &Fragment<'_>) {
        if fragment.is_empty() {
            return;
        }
        let halves = self.high.take().into_iter().chain(fragment.low);
        for character in char::decode_utf16(halves) {
            let character = character.unwrap_or(char::REPLACEMENT_CHARACTER);
            self.add(character.encode_utf8(&mut [0; 4]));
        }
        self.add(&fragment.text);
        self.high = fragment.high;
    }

    /// Whether a whole text has brought more than the fragments, so that the next one has to be compared with it.
    pub(crate) fn is_ahead(&self) -> bool {
        self.repeated < self.ahead.len() || self.low_ahead.is_some()
    }

    /// What a fragment has beyond that which a whole text before it has brought; `None` if it only repeats that. A fragment that
    /// differs adds to the text.
    pub(crate) fn unrepeated<'f>(&mut self, fragment: Fragment<'f>) -> Option<Fragment<'f>> {
        if fragment.low != self.low_ahead {
            self.forget_ahead();
            return Some(fragment);
        }
        let ahead = self.ahead.get(self.repeated..).unwrap_or_default();
        if let Some(rest) = ahead.strip_prefix(&*fragment.text)
            && let Some((bytes, low)) = begins_with_half(rest, fragment.high)
        {
            self.repeated += fragment.text.len() + bytes;
            self.low_ahead = low;
            if !self.is_ahead() {
                self.forget_ahead();
            }
            return None;
        }
        let start = fragment.text.starts_with(ahead).then_some(ahead.len());
        self.forget_ahead();
        Some(match start {
            Some(start) => after(fragment, start),
            None => fragment,
        })
    }

    fn add(&mut self, text: &str) {
        self.bytes += text.len();
        self.checksum.update(text.as_bytes());
    }

    /// Whether a complete value has arrived, equal to the fragments or not.
    pub(crate) fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Compares the fragments with the whole text, after which the text is complete.
    pub(crate) fn complete<'t>(&mut self, whole: &'t str) -> Rest<'t> {
        self.is_complete = true;
        let rest = self.rest(whole);
        if let Rest::Missing(fragment) = &rest {
            self.push(fragment);
            self.note_ahead(fragment);
        }
        rest
    }

    /// A complete value has arrived that is not taken. Returns whether it is the first one.
    pub(crate) fn skip(&mut self) -> bool {
        !std::mem::replace(&mut self.is_complete, true)
    }

    /// No fragments are expected any more that repeat a whole text before them.
    pub(crate) fn forget_ahead(&mut self) {
        self.ahead = String::new();
        self.repeated = 0;
        self.low_ahead = None;
    }

    /// Keeps the end of a whole text, which fragments that it has overtaken will repeat.
    pub(crate) fn note_ahead(&mut self, rest: &Fragment<'_>) {
        if self.ahead.len() - self.repeated + rest.text.len() <= MAX_AHEAD {
            self.ahead.drain(..self.repeated);
            self.repeated = 0;
            self.ahead.push_str(&rest.text);
            self.low_ahead = self.low_ahead.or(rest.low);
        }
    }

    /// Compares the fragments with the whole text.
    pub(crate) fn rest<'t>(&self, whole: &'t str) -> Rest<'t> {
        let Some((start, end)) = whole.split_at_checked(self.bytes) else {
            return Rest::Differs;
        };
        if crc32fast::hash(start.as_bytes()) != self.checksum.clone().finalize() {
            return Rest::Differs;
        }
        let Some(high) = self.high else {
            return if end.is_empty() {
                Rest::Nothing
            } else {
                Rest::Missing(end.into())
            };
        };
        match begins_with_half(end, Some(high)) {
            Some((bytes, low)) => {
                let rest = end.get(bytes..).unwrap_or_default();
                Rest::Missing(Fragment::from(rest).with_low(low))
            }
            None => Rest::Differs,
        }
    }
}

/// The length of the first character of a text, and its second half, if it begins with this half. Each text begins with no half.
fn begins_with_half(text: &str, high: Option<u16>) -> Option<(usize, Option<u16>)> {
    let Some(high) = high else {
        return Some((0, None));
    };
    let first = text.chars().next()?;
    match &*first.encode_utf16(&mut [0; 2]) {
        &[half, low] if half == high => Some((first.len_utf8(), Some(low))),
        _ => None,
    }
}

/// The fragment without the half at its start, and without the start of its text.
fn after(mut fragment: Fragment<'_>, start: usize) -> Fragment<'_> {
    fragment.low = None;
    fragment.text = match fragment.text {
        Cow::Borrowed(text) => Cow::Borrowed(text.get(start..).unwrap_or_default()),
        Cow::Owned(mut text) => Cow::Owned(text.split_off(start)),
    };
    fragment
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(fragments: &[Fragment<'_>]) -> Seen {
        let mut seen = Seen::default();
        fragments.iter().for_each(|fragment| seen.push(fragment));
        seen
    }

    #[test]
    fn d13_a_whole_text_adds_only_what_was_lost() {
        let seen = seen(&["Hel".into(), "lo".into()]);
        assert_eq!(seen.rest("Hello"), Rest::Nothing);
        assert_eq!(seen.rest("Hello!"), Rest::Missing("!".into()));
        for other in ["", "Hell", "hello", "HELLO!", "Hé"] {
            assert_eq!(seen.rest(other), Rest::Differs, "{other}");
        }
        assert!(Seen::default().is_empty());
        assert_eq!(Seen::default().rest(""), Rest::Nothing);
        assert_eq!(Seen::default().rest("a"), Rest::Missing("a".into()));
    }

    #[test]
    fn d13_a_fragment_after_the_whole_text_adds_only_what_is_beyond_it() {
        let rows: [(&[&str], &[&str]); 6] = [
            (&["lo", " you"], &[]),
            (&["l", "o ", "you"], &[]),
            (&["lo", " you!"], &["!"]),
            (&["lo you, and more", " text"], &[", and more", " text"]),
            (&["lo me", "lo"], &["lo me", "lo"]),
            (&["l", "x"], &["x"]),
        ];
        for (fragments, expected) in rows {
            let mut seen = seen(&["Hel".into()]);
            assert_eq!(seen.complete("Hello you"), Rest::Missing("lo you".into()));
            let new = fragments.iter().filter_map(|fragment| {
                let fragment = Fragment::from((*fragment).to_owned());
                match seen.is_ahead() {
                    true => seen.unrepeated(fragment),
                    false => Some(fragment),
                }
            });
            let new: Vec<_> = new.map(|fragment| fragment.text.into_owned()).collect();
            assert_eq!(new, expected, "{fragments:?}");
        }
    }

    #[test]
    fn d13_c14_a_half_beyond_the_whole_text_is_kept() {
        let mut seen = seen(&[]);
        seen.complete("ab");
        let rest = seen.unrepeated(Fragment::from("abc").with_high(0xD83D));
        assert_eq!(rest, Some(Fragment::from("c").with_high(0xD83D)));
    }

    /// The text of fragments that follow `whole`.
    #[track_caller]
    fn check_after_whole(whole: &str, fragments: &[Fragment<'static>], expected: &str) {
        let mut seen = Seen::default();
        seen.complete(whole);
        let (mut text, mut high) = (whole.to_owned(), None);
        for fragment in fragments {
            let new = match seen.is_ahead() {
                true => seen.unrepeated(fragment.clone()),
                false => Some(fragment.clone()),
            };
            if let Some(new) = new {
                new.append_to(&mut text, &mut high);
            }
        }
        assert_eq!(text, expected, "{fragments:?}");
    }

    #[test]
    fn d13_c14_fragments_that_end_in_half_a_character_repeat_it() {
        let high = |text| Fragment::from(text).with_high(0xD83D);
        let low = |text| Fragment::from(text).with_low(0xDE00);
        let whole = "a😀b";
        check_after_whole(whole, &[high("a"), low("b")], whole);
        check_after_whole(whole, &["a".into(), high(""), low(""), "b".into()], whole);
        check_after_whole("a😀", &[high("a"), low("")], "a😀");
        check_after_whole(whole, &[high("a"), low("b!")], "a😀b!");
        check_after_whole(
            "😀😀",
            &[high(""), low("").with_high(0xD83D), low("")],
            "😀😀",
        );
        // The whole text ends before the half.
        check_after_whole("a", &[high("a"), low("b")], whole);
        // These fragments differ.
        check_after_whole(whole, &[high("x"), low("b")], "a😀bx😀b");
        check_after_whole(whole, &[high("a"), "c".into()], "a😀bc");
        check_after_whole("a\u{1F900}b", &[high("a"), low("b")], "a\u{1F900}ba😀b");
        check_after_whole(whole, &[high("a"), low("c")], "a😀b\u{FFFD}c");
    }

    #[test]
    fn d13_c14_a_whole_text_overtakes_the_second_half_of_a_character() {
        let low = |text| Fragment::from(text).with_low(0xDE00);
        let mut seen = seen(&[Fragment::from("a").with_high(0xD83D)]);
        assert_eq!(seen.complete("a😀b"), Rest::Missing(low("b")));
        assert!(seen.is_ahead());
        assert_eq!(seen.unrepeated(low("")), None);
        assert_eq!(seen.unrepeated("b!".into()), Some("!".into()));
        assert!(!seen.is_ahead());
    }

    #[test]
    fn d13_whole_texts_and_fragments_take_turns() {
        let mut seen = Seen::default();
        assert_eq!(seen.complete("ab"), Rest::Missing("ab".into()));
        assert_eq!(seen.unrepeated("a".into()), None);
        assert_eq!(seen.complete("abcd"), Rest::Missing("cd".into()));
        for fragment in ["bc", "d"] {
            assert!(seen.is_ahead());
            assert_eq!(seen.unrepeated(fragment.into()), None);
        }
        assert!(!seen.is_ahead());
    }

    #[test]
    fn d13_c14_half_a_character_is_completed() {
        let cut = seen(&[Fragment::from("a").with_high(0xD83D)]);
        let rest = Fragment::from("b").with_low(0xDE00);
        assert_eq!(cut.rest("a😀b"), Rest::Missing(rest.clone()));
        assert_eq!(cut.rest("a"), Rest::Differs);
        assert_eq!(cut.rest("ab"), Rest::Differs);
        let joined = seen(&[Fragment::from("a").with_high(0xD83D), rest]);
        assert_eq!(joined.rest("a😀b"), Rest::Nothing);
        let lone = seen(&[Fragment::from("a").with_high(0xD83D), "b".into()]);
        assert_eq!(lone.rest("a\u{FFFD}b"), Rest::Nothing);
    }
}
