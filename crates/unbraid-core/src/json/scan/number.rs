//! The grammar of a JSON number, one byte at a time.

/// The state of a number that is being scanned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Number {
    /// Before the first byte.
    Start,
    /// After the sign: a digit must follow.
    Minus,
    /// After a leading zero, which no digit may follow.
    Zero,
    /// In the digits before a point.
    Integer,
    /// After the point: a digit must follow.
    Point,
    /// In the digits after the point.
    Fraction,
    /// After the `e`: a sign or a digit must follow.
    Exponent,
    /// After the sign of the exponent: a digit must follow.
    ExponentSign,
    /// In the digits of the exponent.
    ExponentDigits,
}

impl Number {
    /// The state after the next byte; `None` if the byte is not part of the number.
    pub(super) fn next(self, byte: u8) -> Option<Self> {
        match (self, byte) {
            (Self::Start, b'-') => Some(Self::Minus),
            (Self::Start | Self::Minus, b'0') => Some(Self::Zero),
            (Self::Start | Self::Minus, b'1'..=b'9') | (Self::Integer, b'0'..=b'9') => {
                Some(Self::Integer)
            }
            (Self::Zero | Self::Integer, b'.') => Some(Self::Point),
            (Self::Point | Self::Fraction, b'0'..=b'9') => Some(Self::Fraction),
            (Self::Zero | Self::Integer | Self::Fraction, b'e' | b'E') => Some(Self::Exponent),
            (Self::Exponent, b'+' | b'-') => Some(Self::ExponentSign),
            (Self::Exponent | Self::ExponentSign | Self::ExponentDigits, b'0'..=b'9') => {
                Some(Self::ExponentDigits)
            }
            (
                Self::Start
                | Self::Minus
                | Self::Zero
                | Self::Integer
                | Self::Point
                | Self::Fraction
                | Self::Exponent
                | Self::ExponentSign
                | Self::ExponentDigits,
                _,
            ) => None,
        }
    }

    /// Whether the number may end here.
    pub(super) fn is_complete(self) -> bool {
        match self {
            Self::Zero | Self::Integer | Self::Fraction | Self::ExponentDigits => true,
            Self::Start | Self::Minus | Self::Point | Self::Exponent | Self::ExponentSign => false,
        }
    }
}
