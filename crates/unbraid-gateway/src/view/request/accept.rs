//! The header `Accept`.

use std::cmp::Reverse;

use super::Format;
use crate::header_list;

/// The form that a client accepts; `None` if it accepts neither.
///
/// The weight of a form is that of the most specific range that names it (RFC 9110, 12.5.1). The form with the greater weight
/// counts, then the one that is named more specifically, then the one that is named first.
pub(super) fn format(accept: Option<&[u8]>) -> Option<Format> {
    let Some(accept) = accept else {
        return Some(Format::Events);
    };
    let accept = String::from_utf8_lossy(accept);
    // An empty list names no preference, like no header at all (RFC 9110, 12.5.1).
    if accept.chars().all(|c| c == ',' || c.is_ascii_whitespace()) {
        return Some(Format::Events);
    }
    let ranges: Vec<Range> = header_list::split(&accept, ',').filter_map(parse).collect();
    let events = Named::by(&ranges, "text", "event-stream").filter(Named::is_acceptable);
    let json = Named::by(&ranges, "application", "json").filter(Named::is_acceptable);
    match (events, json) {
        (None, None) => None,
        (None, Some(_)) => Some(Format::Json),
        (Some(_), None) => Some(Format::Events),
        (Some(events), Some(json)) if json > events => Some(Format::Json),
        (Some(_), Some(_)) => Some(Format::Events),
    }
}

/// A range of media types and its weight in thousandths.
struct Range {
    kind: String,
    subtype: String,
    weight: u16,
}

/// How a form is named: what counts more is greater.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Named {
    weight: u16,
    specific: u8,
    position: Reverse<usize>,
}

impl Named {
    fn by(ranges: &[Range], kind: &str, subtype: &str) -> Option<Self> {
        let matching = ranges.iter().enumerate().filter_map(|(position, range)| {
            let specific = match (range.kind.as_str(), range.subtype.as_str()) {
                ("*", "*") => 0,
                (own, "*") if own == kind => 1,
                (own, name) if own == kind && name == subtype => 2,
                _ => return None,
            };
            Some(Self {
                weight: range.weight,
                specific,
                position: Reverse(position),
            })
        });
        matching.max_by_key(|named| (named.specific, named.weight, named.position))
    }

    fn is_acceptable(&self) -> bool {
        self.weight > 0
    }
}

fn parse(range: &str) -> Option<Range> {
    let mut parts = header_list::split(range, ';').map(str::trim);
    let name = parts.next()?.to_ascii_lowercase();
    let (kind, subtype) = name.split_once('/')?;
    let weight = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
    let weight = weight.map_or(Some(1.0), |weight| weight.parse::<f32>().ok())?;
    Some(Range {
        kind: kind.to_owned(),
        subtype: subtype.to_owned(),
        // RFC 9110 12.4.2: three decimals at most, and 0 means not acceptable.
        weight: (weight.clamp(0.0, 1.0) * 1000.0) as u16,
    })
}
