//! Numbers and literals: what no quote and no bracket ends.

use crate::json::token::Literal;

use super::number::Number;

/// How far a number or literal has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    Number(Number),
    /// So many of its letters have come.
    Literal(Literal, u8),
}

impl Word {
    /// The word that starts with this byte, before it is read.
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

    /// The state after as much of `rest` as belongs to the word, and how much that is.
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
                for (ours, theirs) in missing.zip(rest.bytes()) {
                    if ours != theirs {
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
    pub(super) fn is_whole(self) -> bool {
        match self {
            Self::Number(number) => number.is_whole(),
            Self::Literal(literal, letters) => usize::from(letters) == literal.as_str().len(),
        }
    }
}

/// Whether a byte ends a number or literal; where it may stand is the structure's concern.
///
/// Letters and digits do not: `truefalse` is no two values, as it is none to `serde_json`.
pub(super) fn delimits(byte: u8) -> bool {
    matches!(
        byte,
        b' ' | b'\n' | b'\r' | b'\t' | b',' | b':' | b'[' | b']' | b'{' | b'}' | b'"'
    )
}
