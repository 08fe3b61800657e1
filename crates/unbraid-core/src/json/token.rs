//! What the scanner tells of a text.

/// One step through a JSON text.
///
/// A key is `Key`, its `Text`, `KeyEnd`; a string value is `String`, its `Text`, `StringEnd`; a number is its
/// `NumberText` and `NumberEnd`. A text comes in as many pieces as the fragments and its escapes cut it, none of them
/// empty; a number or literal ends only when a delimiter follows it.
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
    /// Characters of a number, as they are written.
    NumberText(&'a str),
    /// The number ends.
    NumberEnd,
    /// A literal.
    Literal(Literal),
    /// The value before was the placeholder `{}` and a further one begins: that one is meant (T22).
    Placeholder,
}

/// What can be open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Container {
    Array,
    Object,
}

/// The three words of JSON.
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

/// Who listens to a scanner.
pub(crate) trait Visit {
    /// Takes the next token.
    fn token(&mut self, token: Token<'_>);
}

/// Listens to nothing: for who only asks what the text is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deaf;

impl Visit for Deaf {
    fn token(&mut self, _token: Token<'_>) {}
}
