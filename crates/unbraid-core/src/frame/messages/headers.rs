//! The headers of a binary message, as far as they say what the message is.

use std::ops::Range;

/// Where a message has its name and its data.
pub(super) struct Headers {
    /// Whether the message reports an error.
    pub(super) is_error: bool,
    /// The type of the event or exception, or the code of the error.
    pub(super) name: Range<usize>,
    /// The payload, or the message of an error without payload.
    pub(super) data: Range<usize>,
}

impl Headers {
    /// Reads the headers in a range of a message, whose payload follows them up to `end`; `None` if they are malformed.
    pub(super) fn read(message: &[u8], headers: Range<usize>, end: usize) -> Option<Self> {
        let payload = headers.end..end;
        let (mut kind, mut name, mut text) = (None, None, None);
        let mut at = headers.start;
        while at < headers.end {
            let header = Header::read(message, at)?;
            at = header.value.end;
            if at > headers.end {
                return None;
            }
            if !header.is_string {
                continue;
            }
            match message.get(header.name)? {
                b":message-type" => kind = Some(header.value),
                b":event-type" | b":exception-type" | b":error-code" => name = Some(header.value),
                b":error-message" => text = Some(header.value),
                _ => {}
            }
        }
        let kind = message.get(kind.unwrap_or_default())?;
        Some(Self {
            is_error: matches!(kind, b"exception" | b"error"),
            name: name.unwrap_or_default(),
            data: text.filter(|_| payload.is_empty()).unwrap_or(payload),
        })
    }
}

/// One header.
struct Header {
    name: Range<usize>,
    value: Range<usize>,
    is_string: bool,
}

impl Header {
    fn read(message: &[u8], at: usize) -> Option<Self> {
        const STRING: u8 = 7;
        let name_length = usize::from(*message.get(at)?);
        let name = at + 1..at + 1 + name_length;
        let kind = *message.get(name.end)?;
        let start = name.end + 1;
        let length = match kind {
            0 | 1 => 0, // true, false
            2 => 1,     // byte
            3 => 2,     // short
            4 => 4,     // integer
            5 | 8 => 8, // long, timestamp
            9 => 16,    // UUID
            6 | STRING => {
                let length = message.get(start..)?.first_chunk()?;
                let start = start + 2;
                let value = start..start + usize::from(u16::from_be_bytes(*length));
                message.get(value.clone())?;
                return Some(Self {
                    name,
                    value,
                    is_string: kind == STRING,
                });
            }
            _ => return None,
        };
        Some(Self {
            name,
            value: start..start + length,
            is_string: false,
        })
    }
}
