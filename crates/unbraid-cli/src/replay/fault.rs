//! What can go wrong between a server and its client, as it is asked for on the command line.

use std::str::FromStr;

use hyper::StatusCode;

/// A fault, and where it strikes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The body breaks, behind so many events or in its middle.
    Body(Break, Option<usize>),
    /// An error status instead of an answer.
    Status(StatusCode),
}

/// How a body breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Break {
    /// It ends like a whole one: something in between has swallowed the rest.
    End,
    /// The connection is closed, with no end of the body.
    Close,
    /// The connection is reset.
    Reset,
    /// Nothing more comes, and the connection stays.
    Stall,
}

impl FromStr for Fault {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, number) = match text.split_once(':') {
            Some((name, number)) => (name, Some(number)),
            None => (text, None),
        };
        let broken = match name {
            "end" => Break::End,
            "close" => Break::Close,
            "reset" => Break::Reset,
            "stall" => Break::Stall,
            "status" => return status(number.unwrap_or_default()),
            _ => return Err("not end, close, reset, stall or status:CODE"),
        };
        let events = number.map(str::parse).transpose();
        let events = events.map_err(|_| "not a number of events behind the colon")?;
        Ok(Self::Body(broken, events))
    }
}

fn status(code: &str) -> Result<Fault, &'static str> {
    code.parse()
        .ok()
        .filter(|code: &u16| (400..=599).contains(code))
        .and_then(|code| StatusCode::from_u16(code).ok())
        .map(Fault::Status)
        .ok_or("not an error status from 400 to 599 behind the colon")
}

#[cfg(test)]
mod tests {
    use hyper::StatusCode;

    use super::{Break, Fault};

    #[test]
    fn faults_are_told_apart() {
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
