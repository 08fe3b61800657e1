//! The content of a message: a text, or a list of parts.

use serde_json::Value;

use super::reader::Reader;
use crate::request::RequestError;

/// The parts of a message.
pub(super) struct Content<'r> {
    pub(super) parts: Vec<Part<'r>>,
    /// Whether it was given as a text, and not as a list.
    pub(super) is_text: bool,
}

/// One part.
pub(super) struct Part<'r> {
    pub(super) kind: PartKind<'r>,
    /// The fields that only some providers have.
    pub(super) rest: Reader<'r>,
}

pub(super) enum PartKind<'r> {
    Text(&'r str),
    Image(Image<'r>),
    /// Reasoning as a part of the content (C11).
    Reasoning(String),
    Refusal(&'r str),
    /// A part that only one provider has: its type. It is read from the rest.
    Other(&'r str),
}

/// An image of a message.
pub(super) struct Image<'r> {
    pub(super) source: ImageSource<'r>,
    /// The resolution at which the model reads it; `None` leaves that to the model.
    pub(super) detail: Option<&'r str>,
}

pub(super) enum ImageSource<'r> {
    Base64 { media_type: &'r str, data: &'r str },
    Url(&'r str),
}

impl ImageSource<'_> {
    /// The address, which holds the data if they were given.
    pub(super) fn url(&self) -> String {
        match self {
            Self::Base64 { media_type, data } => format!("data:{media_type};base64,{data}"),
            Self::Url(url) => (*url).to_owned(),
        }
    }
}

impl<'r> Content<'r> {
    /// Takes the `content` of a message. Without one there are no parts.
    pub(super) fn take(message: &mut Reader<'r>) -> Result<Self, RequestError> {
        if let Some(Value::String(text)) = message.get("content") {
            message.take("content");
            let kind = PartKind::Text(text);
            let rest = message.empty();
            return Ok(Self {
                parts: vec![Part { kind, rest }],
                is_text: true,
            });
        }
        let parts = message.objects("content")?.into_iter();
        Ok(Self {
            parts: parts.map(Part::read).collect::<Result<_, _>>()?,
            is_text: false,
        })
    }

    /// The text, if it was given as one.
    pub(super) fn as_text(&self) -> Option<&'r str> {
        match self.parts.as_slice() {
            [
                Part {
                    kind: PartKind::Text(text),
                    ..
                },
            ] if self.is_text => Some(text),
            _ => None,
        }
    }

    /// The texts of the parts, of which there must be no others. They are joined by line ends.
    pub(super) fn into_text(self) -> Result<String, RequestError> {
        let mut texts = Vec::new();
        for part in self.parts {
            match part.kind {
                PartKind::Text(text) => texts.push(text),
                _ => return Err(part.refuse()),
            }
            part.rest.finish()?;
        }
        Ok(texts.join("\n"))
    }
}

impl<'r> Part<'r> {
    fn read(mut part: Reader<'r>) -> Result<Self, RequestError> {
        let kind = match part.required_text("type")? {
            "text" | "input_text" | "output_text" => PartKind::Text(part.required_text("text")?),
            "image_url" => PartKind::Image(Image::take(&mut part)?),
            "refusal" => PartKind::Refusal(part.required_text("refusal")?),
            "thinking" => PartKind::Reasoning(thinking(&mut part)?),
            other => PartKind::Other(other),
        };
        Ok(Self { kind, rest: part })
    }

    /// The error of a part that the provider does not have.
    pub(super) fn refuse(&self) -> RequestError {
        self.rest.refuse_all("it has no such part of a message")
    }
}

impl<'r> Image<'r> {
    fn take(part: &mut Reader<'r>) -> Result<Self, RequestError> {
        let mut image = part.required_object("image_url")?;
        image.skip_if("detail", |detail| detail == "auto");
        let detail = image.text("detail")?;
        let url = image.required_text("url")?;
        let source = match url.strip_prefix("data:") {
            None => ImageSource::Url(url),
            Some(data) => {
                let (media_type, data) = data
                    .split_once(";base64,")
                    .ok_or_else(|| image.refuse("url", "its data are not in base64"))?;
                ImageSource::Base64 { media_type, data }
            }
        };
        image.finish()?;
        Ok(Self { source, detail })
    }

    /// The source, for a provider that decides the detail itself.
    pub(super) fn without_detail(self, part: &Reader<'_>) -> Result<ImageSource<'r>, RequestError> {
        match self.detail {
            None => Ok(self.source),
            Some(_) => Err(part.refuse_field("image_url.detail")),
        }
    }
}

/// The text of a part with reasoning, which may be a list of texts.
fn thinking(part: &mut Reader<'_>) -> Result<String, RequestError> {
    if let Some(Value::String(text)) = part.get("thinking") {
        part.take("thinking");
        return Ok(text.clone());
    }
    let mut texts = String::new();
    for mut inner in part.objects("thinking")? {
        inner.skip_if("type", |kind| kind == "text");
        texts.push_str(inner.required_text("text")?);
        inner.finish()?;
    }
    Ok(texts)
}
