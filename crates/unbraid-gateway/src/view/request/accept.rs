//! The header `Accept`.

use super::Format;

/// The form that a client accepts; `None` if it accepts neither.
///
/// The range with the greatest weight counts, then the more specific one, then the first.
pub(super) fn format(accept: Option<&[u8]>) -> Option<Format> {
    let Some(accept) = accept else {
        return Some(Format::Events);
    };
    let accept = String::from_utf8_lossy(accept);
    // An empty list names no preference, like no header at all (RFC 9110, 12.5.1).
    if accept.chars().all(|c| c == ',' || c.is_ascii_whitespace()) {
        return Some(Format::Events);
    }
    let mut best: Option<((u16, u8), Format)> = None;
    for range in accept.split(',') {
        let Some((rank, format)) = parse(range) else {
            continue;
        };
        if best.is_none_or(|(known, _)| rank > known) {
            best = Some((rank, format));
        }
    }
    best.map(|(_, format)| format)
}

/// The rank of a range, and the form that it selects.
fn parse(range: &str) -> Option<((u16, u8), Format)> {
    let mut parts = range.split(';').map(str::trim);
    let (specific, format) = match parts.next()?.to_ascii_lowercase().as_str() {
        "text/event-stream" => (2, Format::Events),
        "application/json" => (2, Format::Json),
        "text/*" => (1, Format::Events),
        "application/*" => (1, Format::Json),
        "*/*" => (0, Format::Events),
        _ => return None,
    };
    let weight = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
    let weight = weight.map_or(Some(1.0), |weight| weight.parse::<f32>().ok())?;
    // RFC 9110 12.4.2: three decimals at most, and 0 means not acceptable.
    let weight = (weight.clamp(0.0, 1.0) * 1000.0) as u16;
    (weight > 0).then_some(((weight, specific), format))
}
