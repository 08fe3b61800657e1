//! The text of a delta: a short copy, or a slice of a buffer that many deltas share.

use std::{borrow::Borrow, fmt, ops::Deref, sync::Arc};

use arrayvec::ArrayString;

/// The text of one delta.
///
/// Cloning it copies at most 24 bytes. It dereferences to `str`, its `Display` is the text, and it collects into a `String`.
/// A longer text is a slice of a shared buffer, and keeps that buffer alive (at most 64 KiB, or one larger delta).
///
/// # Examples
///
/// ```
/// use unbraid_core::Text;
///
/// let parts = [Text::from("Hel"), Text::from("lo")];
/// let mut joined = String::new();
/// joined.extend(parts.iter().cloned());
/// assert_eq!(joined, "Hello");
/// assert!(parts[0].starts_with('H'));
/// ```
#[derive(Clone)]
pub struct Text(Repr);

/// A token is nearly always short, and copying it costs less than counting references to a shared buffer.
type Short = ArrayString<24>;

#[derive(Clone)]
enum Repr {
    Short(Short),
    Owned(Arc<str>),
    Slice {
        buffer: Arc<str>,
        start: u32,
        end: u32,
    },
}

impl Text {
    /// Creates a text that is a slice of a shared buffer. It is empty if the range is not valid in the buffer.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::Arc;
    /// use unbraid_core::Text;
    ///
    /// let buffer: Arc<str> = Arc::from("Hello");
    /// assert_eq!(Text::slice(&buffer, 1, 4), "ell");
    /// ```
    #[must_use]
    pub fn slice(buffer: &Arc<str>, start: usize, end: usize) -> Self {
        let text = buffer.get(start..end).unwrap_or("");
        if let Some(short) = Self::short(text) {
            return short;
        }
        match (u32::try_from(start), u32::try_from(end)) {
            (Ok(start), Ok(end)) => Self(Repr::Slice {
                buffer: Arc::clone(buffer),
                start,
                end,
            }),
            _ => Self::from(text),
        }
    }

    /// Creates a text that needs no buffer; `None` if it is longer than 24 bytes.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_core::Text;
    ///
    /// assert_eq!(Text::short("Hi").unwrap(), "Hi");
    /// assert!(Text::short(&"long ".repeat(5)).is_none());
    /// ```
    #[must_use]
    #[inline]
    pub fn short(text: &str) -> Option<Self> {
        Some(Self(Repr::Short(Short::from(text).ok()?)))
    }

    /// Returns the text.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_core::Text;
    ///
    /// assert_eq!(Text::from("Hi").as_str(), "Hi");
    /// ```
    #[must_use]
    #[inline]
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Repr::Short(text) => text,
            Repr::Owned(text) => text,
            Repr::Slice { buffer, start, end } => {
                buffer.get(*start as usize..*end as usize).unwrap_or("")
            }
        }
    }
}

impl Deref for Text {
    type Target = str;
    #[inline]
    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl AsRef<str> for Text {
    fn as_ref(&self) -> &str {
        self
    }
}

impl Borrow<str> for Text {
    fn borrow(&self) -> &str {
        self
    }
}

impl Default for Text {
    fn default() -> Self {
        Self::from("")
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self::short(text).unwrap_or_else(|| Self(Repr::Owned(Arc::from(text))))
    }
}

impl From<Text> for String {
    fn from(text: Text) -> Self {
        text.as_str().to_owned()
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Text {}

impl std::hash::Hash for Text {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl PartialEq<str> for Text {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for Text {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self)
    }
}

impl Extend<Text> for String {
    fn extend<I: IntoIterator<Item = Text>>(&mut self, texts: I) {
        for text in texts {
            self.push_str(&text);
        }
    }
}

impl FromIterator<Text> for String {
    fn from_iter<I: IntoIterator<Item = Text>>(texts: I) -> Self {
        let mut joined = Self::new();
        joined.extend(texts);
        joined
    }
}

impl serde::Serialize for Text {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}
