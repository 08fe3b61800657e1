//! The tokens that the scanner emits.

/// One token of a JSON text.
///
/// A key is `Key`, its `Text`, `KeyEnd`. A string value is `String`, its `Text`, `StringEnd`. A number is its
/// `NumberText` and `NumberEnd`. A text is split at the ends of fragments and at escapes, and no part of it is empty.
/// A number or literal ends only when a delimiter follows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Token<'a> {
    /// An array or object opens.
    Open(Container),
    /// The innermost container closes.
    Close,
    /// A key begins.
    Key,
    /// The key ends.
    KeyEnd,
    /// A string value begins.
    String,
    /// The string value ends.
    StringEnd,
    /// Decoded text of the key or string value that is open.
    Text(&'a str),
    /// Characters of a number, as they are in the text.
    NumberText(&'a str),
    /// The number ends.
    NumberEnd,
    /// A literal.
    Literal(Literal),
    /// The value before was the placeholder `{}`, and another value begins, which replaces it (T22).
    Placeholder,
}

/// The kinds of containers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Container {
    Array,
    Object,
}

/// The literals of JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Literal {
    Null,
    True,
    False,
}

impl Literal {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::True => "true",
            Self::False => "false",
        }
    }
}

/// Receives the tokens of a scanner.
pub(crate) trait TokenListener {
    /// Receives the next token.
    fn token(&mut self, token: Token<'_>);
}

/// Ignores all tokens, for callers that only need the verdict.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NullListener;

impl TokenListener for NullListener {
    fn token(&mut self, _token: Token<'_>) {}
}
