//! The faults that `--fault` can request.

use std::{fmt, str::FromStr};

use hyper::StatusCode;

/// A fault, and its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// The body breaks after this many events, or in its middle.
    Body(Break, Option<usize>),
    /// An error status instead of an answer.
    Status(StatusCode),
}

/// How a body breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Break {
    /// It ends normally, as if a proxy had dropped the rest.
    End,
    /// The connection is closed before the end of the body.
    Close,
    /// The connection is reset.
    Reset,
    /// No more data is sent, and the connection stays open.
    Stall,
}

impl fmt::Display for Break {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::End => "the body ends early",
            Self::Close => "the connection is closed within the body",
            Self::Reset => "the connection is reset",
            Self::Stall => "the body stalls",
        })
    }
}

impl FromStr for Fault {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, number) = match text.split_once(':') {
            Some((name, number)) => (name, Some(number)),
            None => (text, None),
        };
        let kind = match name {
            "end" => Break::End,
            "close" => Break::Close,
            "reset" => Break::Reset,
            "stall" => Break::Stall,
            "status" => return status(number.unwrap_or_default()),
            _ => return Err("not end, close, reset, stall or status:CODE"),
        };
        let events = number.map(str::parse).transpose();
        let events = events.map_err(|_| "not a number of events after the colon")?;
        Ok(Self::Body(kind, events))
    }
}

fn status(code: &str) -> Result<Fault, &'static str> {
    code.parse()
        .ok()
        .filter(|code: &u16| (400..=599).contains(code))
        .and_then(|code| StatusCode::from_u16(code).ok())
        .map(Fault::Status)
        .ok_or("not an error status from 400 to 599 after the colon")
}

#[cfg(test)]
mod tests {
    use hyper::StatusCode;

    use super::{Break, Fault};

    #[test]
    fn faults_are_parsed() {
        let parse = |text: &str| text.parse::<Fault>().ok();
        assert_eq!(parse("end"), Some(Fault::Body(Break::End, None)));
        assert_eq!(parse("reset:3"), Some(Fault::Body(Break::Reset, Some(3))));
        assert_eq!(
            parse("status:429"),
            Some(Fault::Status(StatusCode::TOO_MANY_REQUESTS))
        );
        for wrong in [
            "",
            "fire",
            "end:",
            "end:-1",
            "status",
            "status:200",
            "status:900",
            "status:x",
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
