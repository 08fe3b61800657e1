//! Where a choice's reasoning was in the stream.

use std::sync::Arc;

/// Where a choice's reasoning was in the stream, which decides where a later request repeats it.
///
/// # Examples
///
/// ```
/// use unbraid_core::{ChoiceIndex, Config, Demux, ReasoningSource};
///
/// let mut demux = Demux::new(Config::default());
/// demux.feed(b"data: {\"choices\":[{\"index\":0,\"delta\":{\"reasoning_content\":\"Hm.\"}}]}\n\n");
/// let message = demux.choice(ChoiceIndex(0)).unwrap().message();
/// assert_eq!(message.reasoning_source, Some(ReasoningSource::Field("reasoning_content".into())));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ReasoningSource {
    /// A field of the delta with this name, one of [`Config::reasoning_keys`](crate::Config::reasoning_keys) (R1, R2, R5).
    Field(Arc<str>),
    /// Parts of the content, as a list (C11).
    ContentParts,
    /// Only `reasoning_details`, which are in [`Message::extra`](crate::Message::extra), too (R4).
    Details,
    /// `<think>` tags in the content (C18).
    ThinkTags,
}
