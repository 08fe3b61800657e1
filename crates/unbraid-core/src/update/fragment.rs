//! Text that may begin or end in half a character.

use std::borrow::Cow;

/// A piece of text that may begin or end inside a surrogate pair.
///
/// Servers that cut UTF-16 send one half of an emoji at the end of a delta and the other half at the start of the next
/// one. The updates of `unbraid::Updates` contain no halves in their deltas: they are joined there. A message in place of deltas
/// keeps them.
///
/// # Examples
///
/// ```
/// use unbraid_core::Fragment;
///
/// let fragment = Fragment::from("Hi");
/// assert_eq!((fragment.low, fragment.high), (None, None));
/// assert!(Fragment::default().is_empty());
///
/// let cut = Fragment::from("Hi ").with_high(0xD83D);
/// assert_eq!(cut.high, Some(0xD83D));
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fragment<'a> {
    /// The text between the halves.
    pub text: Cow<'a, str>,
    /// A low surrogate before the text.
    pub low: Option<u16>,
    /// A high surrogate after the text.
    pub high: Option<u16>,
}

impl<'a> Fragment<'a> {
    with_methods! {
        with_low(impl Into<Option<u16>>): low = |low| low.into();
        with_high(impl Into<Option<u16>>): high = |high| high.into();
    }

    /// Whether the fragment contains neither text nor half a character.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.text.is_empty() && self.low.is_none() && self.high.is_none()
    }

    /// The bytes that it counts for; joined halves take four.
    pub(crate) fn len(&self) -> usize {
        self.text.len() + 4 * usize::from(self.low.is_some() || self.high.is_some())
    }

    /// Appends it to a text that may end in half a character, which becomes one with the half at its start. A half without its
    /// other half becomes U+FFFD (C14).
    pub(crate) fn append_to(&self, text: &mut String, high: &mut Option<u16>) {
        if self.is_empty() {
            return;
        }
        let halves = high.take().into_iter().chain(self.low);
        let characters = char::decode_utf16(halves);
        text.extend(characters.map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)));
        text.push_str(&self.text);
        *high = self.high;
    }

    pub(crate) fn into_owned(self) -> Fragment<'static> {
        Fragment {
            text: Cow::Owned(self.text.into_owned()),
            low: self.low,
            high: self.high,
        }
    }
}

impl<'a, T: Into<Cow<'a, str>>> From<T> for Fragment<'a> {
    fn from(text: T) -> Self {
        Fragment {
            text: text.into(),
            low: None,
            high: None,
        }
    }
}
