//! The audio of a message, which arrives in pieces of base64 (M11).

use std::{borrow::Cow, sync::Arc};

use base64::{
    Engine, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig, general_purpose},
};
use serde_json::Value;

use crate::{
    Fragment,
    limits::MAX_JSON_DEPTH,
    node::{self, Node, is_doubtful},
};

/// The audio of a message. Each piece of `data` is decoded separately, and the bytes are joined.
///
/// # Examples
///
/// ```
/// use unbraid_core::{ChoiceIndex, Demux, Config};
///
/// let mut demux = Demux::new(Config::default());
/// for delta in [r#"{"id":"a1"}"#, r#"{"data":"UklGRg=="}"#, r#"{"data":"AQI="}"#, r#"{"transcript":"Hi"}"#] {
///     demux.feed(format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"audio\":{delta}}}}}]}}\n\n").as_bytes());
/// }
/// let audio = demux.choice(ChoiceIndex(0)).unwrap().message().audio.unwrap();
/// assert_eq!(audio.data, b"RIFF\x01\x02");
/// assert_eq!(audio.transcript, "Hi");
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Audio {
    /// The first id.
    pub id: Option<Arc<str>>,
    /// The bytes, in the format that was requested.
    pub data: Vec<u8>,
    /// The spoken text.
    pub transcript: String,
    /// The time at which the id expires, in seconds since 1970. The last value counts.
    pub expires_at: Option<u64>,
    /// Pieces of `data` that are not base64, unchanged. They are not among the bytes.
    pub undecoded: Vec<Arc<str>>,
}

impl Audio {
    /// The `audio` of a message that is not streamed; what is not known is `null`.
    pub(crate) fn to_value(&self) -> Value {
        serde_json::json!({
            "id": self.id.as_deref(),
            "expires_at": self.expires_at,
            "data": general_purpose::STANDARD.encode(&self.data),
            "transcript": self.transcript,
        })
    }

    /// Adds one delta's object; false if its data is not base64.
    pub(crate) fn absorb(&mut self, raw: &str) -> bool {
        let object = crate::json_text::parsed(raw);
        let text = |key: &str| object.get(key).and_then(Value::as_str);
        if let (None, Some(id)) = (&self.id, text("id").filter(|id| !id.is_empty())) {
            self.id = Some(id.into());
        }
        self.transcript.push_str(text("transcript").unwrap_or(""));
        let seconds = |value: &Value| value.as_u64().or_else(|| value.as_f64().map(|s| s as u64));
        let expires_at = object.get("expires_at").and_then(seconds);
        self.expires_at = expires_at.or(self.expires_at);
        let Some(data) = text("data") else {
            return true;
        };
        let decoded = decode(data);
        match &decoded {
            Some(bytes) => self.data.extend_from_slice(bytes),
            None => self.undecoded.push(data.into()),
        }
        decoded.is_some()
    }
}

/// The JSON of one piece. Half a character at an edge of its transcript stays an escape, which the next piece may complete (C14).
pub(crate) fn piece_json<'a>(node: &Node<'a>) -> Cow<'a, str> {
    match node.get(TRANSCRIPT).and_then(cut_text) {
        Some(text) => Cow::Owned(with_transcript(node, &text)),
        None => node.to_json(),
    }
}

/// A text that begins or ends with half a character.
pub(crate) fn cut_text<'n>(node: &'n Node<'_>) -> Option<Fragment<'n>> {
    let is_cut = |text: &Fragment<'_>| text.low.is_some() || text.high.is_some();
    node.fragment().filter(is_cut)
}

/// The JSON of one piece with U+FFFD for each half of a character, as a value that no other piece completes.
pub(crate) fn without_halves(raw: &str) -> Cow<'_, str> {
    let node = is_doubtful(raw).then(|| node::read(raw, MAX_JSON_DEPTH).ok());
    match node.flatten() {
        Some(node) => Cow::Owned(node.to_json().into_owned()),
        None => Cow::Borrowed(raw),
    }
}

/// The rest of a transcript that ends with half a character.
pub(crate) const LONE_HALF: &str = "{\"transcript\":\"\u{FFFD}\"}";

/// The JSON of one piece, with its transcript joined to the half that waits before it. The half at its end is held back (C14).
/// True if a half found no partner.
pub(crate) fn join_transcript<'r>(raw: &'r str, waiting: &mut Option<u16>) -> (Cow<'r, str>, bool) {
    if waiting.is_none() && !is_doubtful(raw) {
        return (Cow::Borrowed(raw), false);
    }
    let node = node::read(raw, MAX_JSON_DEPTH).ok();
    let text = node
        .as_ref()
        .and_then(|node| node.get(TRANSCRIPT)?.fragment());
    let (Some(node), Some(text)) = (&node, text.filter(|text| !text.is_empty())) else {
        return (Cow::Borrowed(raw), false);
    };
    let units = waiting.iter().copied().chain(text.low);
    let is_lone = char::decode_utf16(units).any(|unit| unit.is_err());
    let mut joined = String::new();
    text.append_to(&mut joined, waiting);
    (Cow::Owned(with_transcript(node, &joined.into())), is_lone)
}

const TRANSCRIPT: &str = "transcript";

/// The JSON of a piece with another transcript.
fn with_transcript(node: &Node<'_>, text: &Fragment<'_>) -> String {
    let fields = node.as_object().unwrap_or_default().iter();
    // `serde_json` has a private name, which no raw JSON may hold.
    let fields = fields.filter(|(key, _)| !key.starts_with("$serde_json"));
    let field = |(key, value): &(Cow<'_, str>, Node<'_>)| {
        let value = match &**key {
            TRANSCRIPT => Cow::Owned(quoted(text)),
            _ => value.to_json(),
        };
        format!("{}:{value}", Value::from(&**key))
    };
    let fields: Vec<String> = fields.map(field).collect();
    format!("{{{}}}", fields.join(","))
}

/// A JSON string with the halves at its edges as escapes.
pub(crate) fn quoted(text: &Fragment<'_>) -> String {
    let escape = |half: Option<u16>| half.map_or(String::new(), |unit| format!("\\u{unit:04x}"));
    let json = Value::from(&*text.text).to_string();
    let inner = json
        .strip_prefix('"')
        .and_then(|json| json.strip_suffix('"'));
    let inner = inner.unwrap_or_default();
    format!("\"{}{inner}{}\"", escape(text.low), escape(text.high))
}

/// Decodes base64 of either alphabet, with padding or without, and ignores white space.
fn decode(data: &str) -> Option<Vec<u8>> {
    let config = GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent);
    let alphabets = [alphabet::STANDARD, alphabet::URL_SAFE];
    let compact: String;
    let data = if data.contains(|c: char| c.is_ascii_whitespace()) {
        compact = data.split_ascii_whitespace().collect();
        &compact
    } else {
        data
    };
    let decode = |alphabet| GeneralPurpose::new(&alphabet, config).decode(data).ok();
    alphabets.into_iter().find_map(decode)
}

#[cfg(test)]
mod tests {
    use super::{Audio, decode, join_transcript};

    #[test]
    fn m11_each_piece_has_its_own_padding() {
        let check = |data, expected: Option<&[u8]>| assert_eq!(decode(data).as_deref(), expected);
        check("UklGRg==", Some(b"RIFF"));
        check("UklGRg", Some(b"RIFF"));
        check("Ukl\nGRg==\r\n", Some(b"RIFF"));
        check("-_8=", Some(&[0xFB, 0xFF]));
        check("+/8=", Some(&[0xFB, 0xFF]));
        check("", Some(b""));
        check("no base64!", None);
        check("A", None);
    }

    #[test]
    fn c14_halves_of_a_transcript_are_joined() {
        let mut waiting = None;
        let mut join = |raw: &str| {
            let (joined, is_lone) = join_transcript(raw, &mut waiting);
            (joined.into_owned(), is_lone)
        };
        let mut check = |raw: &str, joined: &str| assert_eq!(join(raw), (joined.to_owned(), false));
        check(r#"{"transcript":"\u00e9"}"#, r#"{"transcript":"\u00e9"}"#);
        check(
            r#"{"id":"\ud83d\ude00","transcript":"a\n\ud83d","expires_at":1e2}"#,
            r#"{"id":"\ud83d\ude00","transcript":"a\n","expires_at":1e2}"#,
        );
        check(
            r#"{"data":"AQI=","transcript":""}"#,
            r#"{"data":"AQI=","transcript":""}"#,
        );
        check(r#"{"transcript":"\ude00\ud83d"}"#, r#"{"transcript":"😀"}"#);
        check(r#"{"transcript":null}"#, r#"{"transcript":null}"#);
        assert_eq!(
            join(r#"{"transcript":"b"}"#),
            ("{\"transcript\":\"\u{FFFD}b\"}".to_owned(), true)
        );
        assert_eq!(
            join(r#"{"transcript":"\ude00"}"#),
            ("{\"transcript\":\"\u{FFFD}\"}".to_owned(), true)
        );
    }

    #[test]
    fn m11_a_piece_that_is_not_base64_is_kept_unchanged() {
        let mut audio = Audio::default();
        assert!(audio.absorb(r#"{"id":"a1","data":"AQI=","expires_at":5}"#));
        assert!(!audio.absorb(r#"{"id":"a2","data":"?","transcript":"x"}"#));
        assert!(audio.absorb(r#"{"data":null,"transcript":"y","expires_at":9.5}"#));
        assert_eq!(
            (audio.id.as_deref(), audio.expires_at),
            (Some("a1"), Some(9))
        );
        assert_eq!((&*audio.data, &*audio.transcript), (&[1, 2][..], "xy"));
        assert_eq!(audio.undecoded, ["?".into()]);
    }
}
