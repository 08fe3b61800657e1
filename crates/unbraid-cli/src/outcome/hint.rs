//! What an input is if it is not a stream.

/// Recognizes an input by its first bytes, beyond the [formats](unbraid_core::BodyFormat) that the stream's own error names.
pub(super) fn hint(head: &[u8]) -> Option<&'static str> {
    Some(match head {
        [0x1f, 0x8b, ..] => "this is gzip: decompress it first",
        [0x28, 0xb5, 0x2f, 0xfd, ..] => "this is zstd: decompress it first",
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => "this is UTF-16: convert it to UTF-8 first",
        _ if head.trim_ascii_start().starts_with(b"<") => "this appears to be HTML or XML",
        _ if is_list(head) => "this appears to be a list, of models, embeddings or others",
        _ => return None,
    })
}

/// Whether this is the beginning of a list of the OpenAI API.
///
/// The head is cut at a fixed length, so it is searched as text: it is rarely valid JSON.
fn is_list(head: &[u8]) -> bool {
    let text = String::from_utf8_lossy(head);
    let text: String = text.split_whitespace().collect();
    text.contains("\"object\":\"list\"")
}
