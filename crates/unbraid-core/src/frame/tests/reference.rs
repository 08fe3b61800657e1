//! A naive implementation of the framer's rules.

mod properties;

use super::json::{Json, shape};
use super::*;

/// The rules, applied literally to the whole body: slow, and without any state between reads.
pub(super) fn reference(body: &[u8], limits: FrameLimits, strict: bool) -> Vec<String> {
    let from = if body.starts_with(BOM) { 3 } else { 0 };
    let mut trace = Vec::new();
    let first = body[from..]
        .iter()
        .position(|byte| !b" \t\r\n".contains(byte));
    let Some(first) = first
        .map(|first| from + first)
        .filter(|at| b"{[".contains(&body[*at]))
    else {
        reference_events(body, from, limits, strict, &mut trace);
        return trace;
    };
    // Only lines of white space precede the brace or bracket.
    for (at, text, _) in lines_of(&body[..first], from) {
        if text.len() > limits.line {
            return vec![too_long(at, limits)];
        }
    }
    if strict {
        return vec![format!("NotSse {{ offset: {first} }}")];
    }
    reference_json(body, first, limits, &mut trace);
    trace
}

fn too_long(offset: usize, limits: FrameLimits) -> String {
    format!("LineTooLong {{ offset: {offset}, limit: {} }}", limits.line)
}

/// The start of each line, its bytes, and whether it has an end.
fn lines_of(body: &[u8], mut at: usize) -> Vec<(usize, &[u8], bool)> {
    let mut lines = Vec::new();
    while at < body.len() {
        let length = body[at..].iter().position(|byte| b"\r\n".contains(byte));
        let text = &body[at..length.map_or(body.len(), |length| at + length)];
        lines.push((at, text, length.is_some()));
        let end = &body[at + text.len()..];
        at += text.len() + if end.starts_with(b"\r\n") { 2 } else { 1 };
    }
    lines
}

fn reference_events(
    body: &[u8],
    at: usize,
    limits: FrameLimits,
    strict: bool,
    trace: &mut Vec<String>,
) {
    let new = || Event {
        limit: limits.event,
        ..Event::default()
    };
    let mut event = new();
    let (mut bare, mut bare_start) = (Vec::new(), 0);
    for (at, text, ended) in lines_of(body, at) {
        if text.len() > limits.line {
            return trace.push(too_long(at, limits));
        }
        let is_legal = text.trim_ascii().is_empty()
            || [&b"data:"[..], b":"]
                .iter()
                .any(|start| text.starts_with(start));
        if strict && !is_legal {
            return trace.push(format!("NotData {{ offset: {at} }}"));
        }
        let mut halves = text.splitn(2, |byte| *byte == b':');
        let field = halves.next().unwrap_or_default();
        let value = halves.next().unwrap_or_default();
        let value = value.strip_prefix(b" ").unwrap_or(value);
        let is_error = field == b"error" && value.starts_with(b"{") && event.data.is_empty();
        if is_error || [&b"data"[..], b"event", b"id", b"retry"].contains(&field) {
            event.start = event.start.or(Some(at));
        }
        match field {
            b"" if text.is_empty() => {
                if !event.data.is_empty() {
                    event.rename();
                    event.give(FrameKind::Event, trace);
                }
                event = new();
            }
            b"data" => event.data_line(value, at, ended, strict, trace),
            b"error" if is_error => {
                event.name = field.to_vec();
                event.data_line(value, at, ended, strict, trace);
            }
            b"event" if !event.data.is_empty() && !event.name.is_empty() => {
                event.next = Some((value.to_vec(), at));
            }
            b"event" if value == b"ping" && !event.data.is_empty() => {}
            b"event" => event.name = value.to_vec(),
            _ if text.trim_ascii() == DONE
                && !event.data.is_empty()
                && event.is_error()
                && event.next.is_none() =>
            {
                event.data.push(DONE);
            }
            _ if text.trim_ascii() == DONE => {
                if !event.data.is_empty() {
                    event.give(FrameKind::Line, trace);
                    event.apart = true;
                }
                trace.push(line(FrameKind::BareDone, b"", DONE, at as u64));
            }
            b"" | b"id" | b"retry" => {}
            // G16: JSON without a field name, which is the body's last frame.
            _ if bare.is_empty()
                && !text.trim_ascii().starts_with(b"{")
                && !text.trim_ascii().starts_with(b"[{")
                && text.trim_ascii() != b"[" => {}
            _ => {
                if bare.is_empty() {
                    bare_start = at;
                }
                bare.extend_from_slice(text);
                bare.push(b'\n');
            }
        }
        if event.data.join(&b'\n').len() > limits.event {
            let offset = event.start.unwrap_or_default();
            return trace.push(format!(
                "EventTooLong {{ offset: {offset}, limit: {} }}",
                limits.event
            ));
        }
    }
    if !event.data.is_empty() {
        event.rename();
        event.give(FrameKind::Truncated, trace);
    }
    if !bare.is_empty() {
        trace.push(line(FrameKind::BareJson, b"", &bare, bare_start as u64));
    }
}

/// The current event.
#[derive(Default)]
struct Event<'b> {
    name: Vec<u8>,
    data: Vec<&'b [u8]>,
    start: Option<usize>,
    /// A second name, after the data, and where it starts (S10).
    next: Option<(Vec<u8>, usize)>,
    /// Whether its data lines are not JSON together.
    apart: bool,
    /// The limit on its data.
    limit: usize,
}

impl<'b> Event<'b> {
    fn give(&mut self, kind: FrameKind, trace: &mut Vec<String>) {
        let offset = self.start.unwrap_or_default() as u64;
        trace.push(line(kind, &self.name, &self.data.join(&b'\n'), offset));
        (self.name, self.data, self.start) = (Vec::new(), Vec::new(), None);
        if let Some((name, start)) = self.next.take() {
            (self.name, self.start) = (name, Some(start));
        }
    }

    /// The last of several names counts, unless it is that of a ping (S16).
    fn rename(&mut self) {
        if let Some((name, _)) = self.next.take().filter(|(name, _)| name != b"ping") {
            self.name = name;
        }
    }

    fn is_error(&self) -> bool {
        self.name == b"error"
    }

    fn data_line(
        &mut self,
        value: &'b [u8],
        at: usize,
        ended: bool,
        strict: bool,
        trace: &mut Vec<String>,
    ) {
        let blank = value.trim_ascii().is_empty();
        let mut is_whole = strict || self.is_error();
        if !self.data.is_empty() && !blank && !strict {
            let before = self.data.join(&b'\n');
            let joined = [&before[..], value].join(&b'\n');
            let is_apart = match is_whole {
                true => self.next.is_some(),
                false => {
                    shape(&before) != Json::Begun
                        || value.trim_ascii() == DONE
                        || shape(&joined) == Json::Wrong
                }
            };
            if is_apart {
                self.give(FrameKind::Line, trace);
                self.apart = true;
                self.start.get_or_insert(at);
                is_whole = self.is_error();
            } else {
                self.rename();
            }
        }
        if is_whole || (blank && !self.data.is_empty()) {
            return self.data.push(value);
        }
        if self.apart && blank {
            return;
        }
        let first = self.data.is_empty();
        self.data.push(value);
        if self.data.join(&b'\n').len() > self.limit {
            return;
        }
        let kind = if ended {
            FrameKind::Line
        } else {
            FrameKind::Truncated
        };
        match (shape(&self.data.join(&b'\n')), first, self.apart) {
            (Json::Begun, ..) | (Json::Complete, _, false) | (_, true, false) => {}
            _ => {
                self.apart = true;
                self.give(kind, trace);
            }
        }
    }
}

fn reference_json(body: &[u8], mut at: usize, limits: FrameLimits, trace: &mut Vec<String>) {
    while let Some(byte) = body.get(at) {
        if b" \t\r\n,[]".contains(byte) {
            at += 1;
            continue;
        }
        if *byte == b'{' {
            let end = object_end(&body[at..]);
            let (length, read) = match end {
                End::Complete(end) => (end, end),
                End::Broken(end) => (end, end + 2),
                End::Missing => (body.len() - at, body.len() - at),
            };
            let value = &body[at..at + length];
            if read > limits.event {
                return trace.push(format!(
                    "EventTooLong {{ offset: {at}, limit: {} }}",
                    limits.event
                ));
            }
            trace.push(match end {
                End::Complete(_) => line(FrameKind::Json, b"", value, at as u64),
                End::Broken(_) => line(FrameKind::Garbage, b"", value.trim_ascii_end(), at as u64),
                End::Missing => line(FrameKind::Truncated, b"", value, at as u64),
            });
            at += value.len();
            continue;
        }
        let fields = [&b"data:"[..], b"event:", b"id:", b"retry:", b":"];
        let text = lines_of(body, at)
            .first()
            .map_or(&b""[..], |(_, text, _)| text);
        let starts_line = b"\r\n".contains(&body[at - 1]);
        if text.len() > limits.line {
            return trace.push(too_long(at, limits));
        }
        if starts_line && fields.iter().any(|field| text.starts_with(field)) {
            return reference_events(body, at, limits, false, trace);
        }
        trace.push(
            if body[at - 1] == b'[' && text.trim_ascii_end() == b"DONE]" {
                line(FrameKind::BareDone, b"", DONE, at as u64 - 1)
            } else {
                line(FrameKind::Garbage, b"", text, at as u64)
            },
        );
        at += text.len();
    }
}

/// Where an object ends, or where a line inside it shows that it was cut.
enum End {
    Complete(usize),
    Broken(usize),
    Missing,
}

fn object_end(body: &[u8]) -> End {
    let (mut depth, mut quoted, mut escaped) = (0, false, false);
    let (mut significant, mut line_end) = (b'{', false);
    for (at, byte) in body.iter().enumerate() {
        let may_start = quoted || !b":,[".contains(&significant);
        if line_end && may_start && body[at..].starts_with(b"{\"") {
            return End::Broken(at);
        }
        line_end = *byte == b'\n' && !escaped;
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'{' if !quoted => depth += 1,
            b'}' if !quoted => depth -= 1,
            _ => {}
        }
        if (!quoted && !byte.is_ascii_whitespace()) || *byte == b'"' {
            significant = *byte;
        }
        if depth == 0 {
            return End::Complete(at + 1);
        }
    }
    End::Missing
}
