//! Scans numbers and literals, which end only where another token begins.

use crate::json::token::Literal;

use super::number::Number;

/// The state of a number or literal that is being scanned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    Number(Number),
    /// A literal, and how many of its letters were scanned.
    Literal(Literal, u8),
}

impl Word {
    /// The word that starts with this byte, which is not scanned yet.
    pub(super) fn start(byte: u8) -> Option<Self> {
        let literal = match byte {
            b'-' | b'0'..=b'9' => return Some(Self::Number(Number::Start)),
            b'n' => Literal::Null,
            b't' => Literal::True,
            b'f' => Literal::False,
            _ => return None,
        };
        Some(Self::Literal(literal, 0))
    }

    /// The state after as many bytes of `rest` as belong to the word, and their number.
    pub(super) fn advance(self, rest: &str) -> (Self, usize) {
        match self {
            Self::Number(number) => {
                let (mut number, mut used) = (number, 0);
                for byte in rest.bytes() {
                    let Some(next) = number.next(byte) else { break };
                    number = next;
                    used += 1;
                }
                (Self::Number(number), used)
            }
            Self::Literal(literal, letters) => {
                let (mut letters, mut used) = (letters, 0);
                let missing = literal.as_str().bytes().skip(letters.into());
                for (expected, byte) in missing.zip(rest.bytes()) {
                    if expected != byte {
                        break;
                    }
                    letters += 1;
                    used += 1;
                }
                (Self::Literal(literal, letters), used)
            }
        }
    }

    /// Whether the word may end here.
    pub(super) fn is_complete(self) -> bool {
        match self {
            Self::Number(number) => number.is_complete(),
            Self::Literal(literal, letters) => usize::from(letters) == literal.as_str().len(),
        }
    }
}

/// Whether a byte ends a number or literal. Whether it is valid there is checked by the scanner.
///
/// Letters and digits do not: like `serde_json`, the scanner does not accept `truefalse` as two values.
pub(super) fn delimits(byte: u8) -> bool {
    matches!(
        byte,
        b' ' | b'\n' | b'\r' | b'\t' | b',' | b':' | b'[' | b']' | b'{' | b'}' | b'"'
    )
}
