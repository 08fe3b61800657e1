//! What a reader requests: a view, where it begins, and its form.

mod accept;

use std::borrow::Cow;

use unbraid_core::ChoiceIndex;
use unbraid_log::Seq;

/// A request for a view, parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ViewRequest {
    pub(crate) target: Target,
    pub(crate) start: Start,
    pub(crate) format: Format,
}

/// Which part of a stream a view shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Target {
    /// All events.
    Combined,
    /// One choice as a stream of its own.
    Choice {
        index: ChoiceIndex,
        /// Whether the choice keeps its index, in place of 0.
        keep_index: bool,
        /// The only part of its message that is shown.
        part: Option<Part>,
    },
}

impl Target {
    /// Whether an event of this view depends on earlier ones: calls without an index are numbered by their order.
    pub(super) fn needs_all_events(self) -> bool {
        match self {
            Self::Combined => false,
            Self::Choice { part, .. } => matches!(part, Some(Part::ToolCall(_))),
        }
    }
}

/// A part of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Part {
    Content,
    Reasoning,
    Refusal,
    /// The tool call with this index.
    ToolCall(u32),
}

impl Part {
    fn parse(name: &str) -> Option<Self> {
        match name {
            "content" => Some(Self::Content),
            "reasoning" => Some(Self::Reasoning),
            "refusal" => Some(Self::Refusal),
            _ => {
                let call = name.strip_prefix("tool_calls.")?;
                let call = call.parse().ok().filter(|_| is_decimal(call.as_bytes()))?;
                Some(Self::ToolCall(call))
            }
        }
    }
}

/// Where a view begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    /// With the first event.
    Beginning,
    /// With one chunk that holds everything so far.
    Snapshot,
    /// With the current position, and then new events.
    Tail,
    /// With the first event after a cursor.
    After(Seq),
}

/// The form of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// Server-sent events.
    Events,
    /// The message so far as one JSON object.
    Json,
}

/// The headers that select a view. The values of `Accept`, which is a list, are joined by commas if it is sent several times.
#[derive(Debug, Clone, Default)]
pub(crate) struct RequestHeaders<'a> {
    pub(crate) accept: Option<Cow<'a, [u8]>>,
    pub(crate) last_event_id: Option<&'a [u8]>,
}

/// Why a view is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ViewError {
    /// 400 `bad_cursor`.
    #[error("a cursor is a decimal number below 2^63")]
    BadCursor,
    /// 400 `invalid_parameter`.
    #[error("the value of the query parameter `{0}` is not known")]
    InvalidParameter(&'static str),
    /// 404 `choice_not_found`.
    #[error("the stream has no such choice")]
    ChoiceNotFound,
    /// 406 `not_acceptable`.
    #[error("a view is text/event-stream or application/json")]
    NotAcceptable,
}

impl ViewRequest {
    /// The view of a POST: all events, from the first one or after a cursor.
    pub(crate) fn of_post(after: Option<Seq>) -> Self {
        Self {
            target: Target::Combined,
            start: after.map_or(Start::Beginning, Start::After),
            format: Format::Events,
        }
    }

    /// Parses the query and the headers of a GET: of one choice, or of the combined view. Other parameters, such as those of
    /// links, are ignored, and so is a parameter that is repeated.
    pub(crate) fn parse(
        choice: Option<ChoiceIndex>,
        query: Option<&str>,
        headers: RequestHeaders<'_>,
    ) -> Result<Self, ViewError> {
        let query = Query::parse(query.unwrap_or_default());
        let format = match query.stream.as_deref() {
            Some("true") => Format::Events,
            Some("false") => Format::Json,
            Some(_) => return Err(ViewError::InvalidParameter("stream")),
            None => accept::format(headers.accept.as_deref()).ok_or(ViewError::NotAcceptable)?,
        };
        Ok(Self {
            target: query.target(choice)?,
            start: query.start(headers.last_event_id)?,
            format,
        })
    }

    /// Parses a cursor: the value of `Last-Event-ID`.
    pub(crate) fn parse_cursor(value: &[u8]) -> Result<Seq, ViewError> {
        let text = str::from_utf8(value).ok().filter(|_| is_decimal(value));
        let number = text.and_then(|text| text.parse().ok()).map(Seq);
        number
            .filter(|seq| *seq <= Seq::MAX)
            .ok_or(ViewError::BadCursor)
    }
}

fn is_decimal(value: &[u8]) -> bool {
    !value.is_empty() && value.iter().all(u8::is_ascii_digit)
}

/// The parameters of views, decoded.
#[derive(Debug, Default)]
struct Query {
    after: Option<String>,
    from: Option<String>,
    index: Option<String>,
    part: Option<String>,
    stream: Option<String>,
}

impl Query {
    fn parse(query: &str) -> Self {
        let mut parsed = Self::default();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let field = match &*name {
                "after" => &mut parsed.after,
                "from" => &mut parsed.from,
                "index" => &mut parsed.index,
                "part" => &mut parsed.part,
                "stream" => &mut parsed.stream,
                _ => continue,
            };
            field.get_or_insert_with(|| value.into_owned());
        }
        parsed
    }

    fn target(&self, choice: Option<ChoiceIndex>) -> Result<Target, ViewError> {
        let keep_index = match self.index.as_deref() {
            None => false,
            Some("keep") => true,
            Some(_) => return Err(ViewError::InvalidParameter("index")),
        };
        let unknown_part = ViewError::InvalidParameter("part");
        let part = self.part.as_deref();
        let part = part
            .map(|part| Part::parse(part).ok_or(unknown_part))
            .transpose()?;
        match choice {
            Some(index) => Ok(Target::Choice {
                index,
                keep_index,
                part,
            }),
            // The combined view keeps all indices, and has no parts.
            None if part.is_some() => Err(unknown_part),
            None => Ok(Target::Combined),
        }
    }

    /// The header takes precedence over `after`, because `EventSource` repeats the URL, and a cursor over `from`.
    fn start(&self, last_event_id: Option<&[u8]>) -> Result<Start, ViewError> {
        let after = self.after.as_ref().map(String::as_bytes);
        if let Some(cursor) = last_event_id.or(after) {
            return ViewRequest::parse_cursor(cursor).map(Start::After);
        }
        match self.from.as_deref() {
            None | Some("start") => Ok(Start::Beginning),
            Some("snapshot") => Ok(Start::Snapshot),
            Some("tail") => Ok(Start::Tail),
            Some(_) => Err(ViewError::InvalidParameter("from")),
        }
    }
}

#[cfg(test)]
mod tests;
