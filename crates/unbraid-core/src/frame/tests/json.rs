//! A naive reference for `Value`: recursive descent over the whole text each time.

#[derive(Debug, PartialEq)]
pub(super) enum Json {
    Begun,
    Complete,
    /// A value with something else after it.
    CompleteAndMore,
    Wrong,
}

/// The state of a text as JSON. Numbers, words and control characters are not checked.
pub(super) fn shape(text: &[u8]) -> Json {
    let text = outer(text);
    match value(text, 0) {
        Ok(rest) if outer(rest).is_empty() => Json::Complete,
        Ok(_) => Json::CompleteAndMore,
        Err(Fault::End) => Json::Begun,
        Err(Fault::Wrong) => Json::Wrong,
    }
}

enum Fault {
    End,
    Wrong,
}

fn outer(text: &[u8]) -> &[u8] {
    let space = |byte: &u8| b" \t\r\n\x0B\x0C".contains(byte) || *byte >= 0x80;
    let start = text.iter().position(|byte| !space(byte));
    &text[start.unwrap_or(text.len())..]
}

fn spaced(text: &[u8]) -> &[u8] {
    let start = text.iter().position(|byte| !b" \t\r\n".contains(byte));
    &text[start.unwrap_or(text.len())..]
}

fn value(text: &[u8], depth: usize) -> Result<&[u8], Fault> {
    let word = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
    match text.first() {
        None => Err(Fault::End),
        Some(b'{' | b'[') if depth == 512 => Err(Fault::Wrong),
        Some(b'{') => items(&text[1..], b'}', depth),
        Some(b'[') => items(&text[1..], b']', depth),
        Some(b'"') => string(&text[1..]),
        Some(byte) if word(byte) => {
            let end = text.iter().position(|byte| !word(byte));
            match end {
                None if depth > 0 => Err(Fault::End),
                end => Ok(&text[end.unwrap_or(text.len())..]),
            }
        }
        Some(_) => Err(Fault::Wrong),
    }
}

fn string(text: &[u8]) -> Result<&[u8], Fault> {
    let mut at = 0;
    loop {
        match text.get(at) {
            None => return Err(Fault::End),
            Some(b'"') => return Ok(&text[at + 1..]),
            Some(b'\\') => at += 2,
            Some(_) => at += 1,
        }
    }
}

fn items(text: &[u8], end: u8, depth: usize) -> Result<&[u8], Fault> {
    let mut rest = spaced(text);
    if rest.first() == Some(&end) {
        return Ok(&rest[1..]);
    }
    loop {
        if end == b'}' {
            rest = match rest.first() {
                None => return Err(Fault::End),
                Some(b'"') => spaced(string(&rest[1..])?),
                Some(_) => return Err(Fault::Wrong),
            };
            rest = match rest.first() {
                None => return Err(Fault::End),
                Some(b':') => spaced(&rest[1..]),
                Some(_) => return Err(Fault::Wrong),
            };
        }
        rest = spaced(value(rest, depth + 1)?);
        match rest.first() {
            None => return Err(Fault::End),
            Some(b',') => rest = spaced(&rest[1..]),
            Some(byte) if *byte == end => return Ok(&rest[1..]),
            Some(_) => return Err(Fault::Wrong),
        }
    }
}
