//! JSON pointers (RFC 6901).

use std::{fmt, str::FromStr};

/// Refers to one value of a JSON text: `/answer`, `/steps/0/title`, or the empty pointer for the whole text.
///
/// # Examples
///
/// ```
/// use unbraid_core::json::{Pointer, PointerError};
///
/// assert!(Pointer::parse("/steps/0/title").is_ok());
/// assert_eq!(Pointer::parse("answer"), Err(PointerError::NoSlash));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Pointer {
    source: Box<str>,
    tokens: Box<[ReferenceToken]>,
}

/// One reference token of a pointer: a key, and the array position that the same text stands for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ReferenceToken {
    pub(crate) key: Box<str>,
    pub(crate) index: Option<usize>,
}

impl Pointer {
    /// Parses a pointer, in which `~1` is a slash in a key and `~0` is a tilde.
    ///
    /// A reference token such as `0` is a position in an array and a key in an object. With a leading zero it is only
    /// a key. So is `-`, which refers to a position that no array has.
    ///
    /// # Errors
    ///
    /// The pointer is not empty and does not start with a slash, or a tilde is not part of an escape.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_core::json::{Pointer, PointerError};
    ///
    /// assert!(Pointer::parse("/a~1b/m~0n").is_ok());
    /// assert_eq!(Pointer::parse("/a~2b"), Err(PointerError::Tilde { offset: 2 }));
    /// ```
    pub fn parse(pointer: &str) -> Result<Self, PointerError> {
        let tokens = match pointer.strip_prefix('/') {
            None if pointer.is_empty() => Box::default(),
            None => return Err(PointerError::NoSlash),
            Some(tokens) => {
                let invalid = pointer.match_indices('~').find(|(offset, _)| {
                    let next = pointer.as_bytes().get(offset + 1);
                    !matches!(next, Some(b'0' | b'1'))
                });
                if let Some((offset, _)) = invalid {
                    return Err(PointerError::Tilde { offset });
                }
                tokens.split('/').map(ReferenceToken::new).collect()
            }
        };
        let source = pointer.into();
        Ok(Self { source, tokens })
    }

    /// Returns the pointer as it was written.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_core::json::Pointer;
    ///
    /// assert_eq!(Pointer::parse("/a~1b")?.as_str(), "/a~1b");
    /// # Ok::<(), unbraid_core::json::PointerError>(())
    /// ```
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.source
    }

    /// The reference token at this depth; `None` at the value itself.
    pub(crate) fn token(&self, depth: usize) -> Option<&ReferenceToken> {
        self.tokens.get(depth)
    }
}

impl FromStr for Pointer {
    type Err = PointerError;

    fn from_str(pointer: &str) -> Result<Self, PointerError> {
        Self::parse(pointer)
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.source)
    }
}

impl ReferenceToken {
    fn new(escaped: &str) -> Self {
        // RFC 6901, section 4: the order matters, so that `~01` becomes `~1`.
        let key = escaped.replace("~1", "/").replace("~0", "~");
        let digits = key.bytes().all(|byte| byte.is_ascii_digit());
        let index = (digits && (key == "0" || !key.starts_with('0')))
            .then(|| key.parse().ok())
            .flatten();
        let key = key.into();
        Self { key, index }
    }
}

/// The error of a text that is not a [`Pointer`].
///
/// # Examples
///
/// ```
/// use unbraid_core::json::{Pointer, PointerError};
///
/// assert_eq!(Pointer::parse("a"), Err(PointerError::NoSlash));
/// assert_eq!(Pointer::parse("/~"), Err(PointerError::Tilde { offset: 1 }));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum PointerError {
    /// The pointer is not empty, but does not start with a slash.
    #[error("a pointer that is not empty starts with a slash")]
    NoSlash,
    /// A tilde is followed by neither `0` nor `1`.
    #[error("the tilde at byte {offset} is neither `~0` nor `~1`")]
    Tilde {
        /// The byte offset of the tilde in the pointer.
        offset: usize,
    },
}
