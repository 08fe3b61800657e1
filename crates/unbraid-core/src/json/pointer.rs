//! JSON pointers (RFC 6901): which value of a text is meant.

use std::{fmt, str::FromStr};

/// Names one value of a JSON text: `/answer`, `/steps/0/title`, or nothing for the whole.
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
    steps: Box<[Step]>,
}

/// One step down: a key, and the position in an array that the same text names.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Step {
    pub(crate) key: Box<str>,
    pub(crate) index: Option<usize>,
}

impl Pointer {
    /// Reads a pointer; `~1` is a slash in a key and `~0` a tilde.
    ///
    /// A step such as `0` is a position in an array and a key in an object, whichever the text has there. With a leading
    /// zero it is only a key, and so is `-`, which names what no array has.
    ///
    /// # Errors
    ///
    /// The pointer is neither empty nor starts with a slash, or a tilde stands for nothing.
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
        let steps = match pointer.strip_prefix('/') {
            None if pointer.is_empty() => Box::default(),
            None => return Err(PointerError::NoSlash),
            Some(steps) => {
                let wrong = pointer.match_indices('~').find(|(at, _)| {
                    let next = pointer.as_bytes().get(at + 1);
                    !matches!(next, Some(b'0' | b'1'))
                });
                if let Some((offset, _)) = wrong {
                    return Err(PointerError::Tilde { offset });
                }
                steps.split('/').map(Step::new).collect()
            }
        };
        let source = pointer.into();
        Ok(Self { source, steps })
    }

    /// The pointer as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.source
    }

    /// The step that leads on from so many steps down; `None` at the value itself.
    pub(crate) fn step(&self, at: usize) -> Option<&Step> {
        self.steps.get(at)
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

impl Step {
    fn new(escaped: &str) -> Self {
        // RFC 6901, 4: in this order, so that `~01` becomes `~1`.
        let key = escaped.replace("~1", "/").replace("~0", "~");
        let digits = key.bytes().all(|byte| byte.is_ascii_digit());
        let index = (digits && (key == "0" || !key.starts_with('0')))
            .then(|| key.parse().ok())
            .flatten();
        let key = key.into();
        Self { key, index }
    }
}

/// Why a text is no [`Pointer`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum PointerError {
    /// It has steps, but the slash before the first is missing.
    #[error("a pointer that is not empty starts with a slash")]
    NoSlash,
    /// A tilde is followed by neither `0` nor `1`.
    #[error("the tilde at byte {offset} is neither `~0` nor `~1`")]
    Tilde {
        /// Where the tilde stands in the pointer.
        offset: usize,
    },
}
