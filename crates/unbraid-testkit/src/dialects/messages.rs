//! Binary messages of `application/vnd.amazon.eventstream`, with a checksum computed bit by bit.

/// A message, as far as readers need it.
pub(super) struct Message {
    /// `event`, `exception` or `error`.
    pub(super) kind: String,
    /// The type of the event or exception, or the code of the error.
    pub(super) name: String,
    pub(super) payload: Vec<u8>,
}

/// The messages of a body, and whether one of them is damaged. A message that is cut off is left out.
pub(super) fn split(mut bytes: &[u8]) -> (Vec<Message>, bool) {
    let mut messages = Vec::new();
    while bytes.len() >= 12 {
        let total = number(bytes, 0);
        if checksum(&bytes[..8]) != number(bytes, 8) || total < 16 {
            return (messages, true);
        }
        let total = total as usize;
        if bytes.len() < total {
            break;
        }
        let (message, rest) = bytes.split_at(total);
        let end = total - 4;
        let headers_end = 12 + number(bytes, 4) as usize;
        if checksum(&message[..end]) != number(message, end) || headers_end > end {
            return (messages, true);
        }
        let (kind, name) = headers(&message[12..headers_end]);
        messages.push(Message {
            kind,
            name,
            payload: message[headers_end..end].to_vec(),
        });
        bytes = rest;
    }
    (messages, false)
}

/// The kind and the name, from headers that are strings.
fn headers(mut bytes: &[u8]) -> (String, String) {
    let (mut kind, mut name) = ("event".to_owned(), String::new());
    while !bytes.is_empty() {
        let key_end = 1 + bytes[0] as usize;
        assert_eq!(bytes[key_end], 7, "recorded headers are strings");
        let start = key_end + 3;
        let length = usize::from(u16::from_be_bytes([bytes[key_end + 1], bytes[key_end + 2]]));
        let value = String::from_utf8_lossy(&bytes[start..start + length]).into_owned();
        match &bytes[1..key_end] {
            b":message-type" => kind = value,
            b":event-type" | b":exception-type" | b":error-code" => name = value,
            _ => {}
        }
        bytes = &bytes[start + length..];
    }
    (kind, name)
}

/// A message with these headers, which are strings.
///
/// # Panics
///
/// Panics if a header is longer than its length field can say.
pub fn message(headers: &[(&str, &str)], payload: &[u8]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in headers {
        block.push(u8::try_from(name.len()).expect("short names"));
        block.extend(name.as_bytes());
        block.push(7);
        block.extend(
            u16::try_from(value.len())
                .expect("short values")
                .to_be_bytes(),
        );
        block.extend(value.as_bytes());
    }
    let total = u32::try_from(16 + block.len() + payload.len()).expect("short payloads");
    let length = u32::try_from(block.len()).expect("short headers");
    let mut bytes = total.to_be_bytes().to_vec();
    bytes.extend(length.to_be_bytes());
    bytes.extend(checksum(&bytes).to_be_bytes());
    bytes.extend(block);
    bytes.extend(payload);
    bytes.extend(checksum(&bytes).to_be_bytes());
    bytes
}

fn number(bytes: &[u8], at: usize) -> u32 {
    let bytes: [u8; 4] = bytes[at..at + 4].try_into().expect("four bytes");
    u32::from_be_bytes(bytes)
}

/// CRC32 with the polynomial of IEEE 802.3.
fn checksum(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            let carry = crc & 1;
            crc >>= 1;
            if carry == 1 {
                crc ^= 0xEDB8_8320;
            }
        }
    }
    !crc
}
