//! The streams that the command reads.

use std::{
    fs::File,
    io::{self, BufWriter, Write},
    path::Path,
};

use serde_json::{Value, json};

use crate::random::Random;

pub(super) const TINY: &str = "tiny.sse";
pub(super) const TEXT: &str = "text.sse";
pub(super) const LOGPROBS: &str = "logprobs.sse";

const WORDS: [&str; 8] = [
    " The", " rain", " falls", " on", " every", " roof", " in", " Bergen",
];

/// Writes all streams into a directory, the large ones with about so many bytes.
pub(super) fn write(dir: &Path, bytes: usize) -> io::Result<()> {
    let mut random = Random::new(5);
    write_stream(&dir.join(TINY), 2, 4_000, |_| text(WORDS[0]))?;
    write_stream(&dir.join(TEXT), 8, bytes, |_| {
        text(WORDS[random.below(WORDS.len())])
    })?;
    let mut random = Random::new(5);
    write_stream(&dir.join(LOGPROBS), 4, bytes, |_| {
        with_logprobs(WORDS[random.below(WORDS.len())], &mut random)
    })
}

/// Writes a stream whose choices take turns.
fn write_stream(
    path: &Path,
    choices: usize,
    bytes: usize,
    mut part: impl FnMut(usize) -> (Value, Value),
) -> io::Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    let mut written = 0;
    let mut event = |choice: usize, delta: Value, logprobs: Value, reason: Value| {
        let chunk = json!({
            "id": "chatcmpl-AbCdEfGhIjKlMnOpQrStUvWxYz012",
            "object": "chat.completion.chunk",
            "created": 1_730_000_000,
            "model": "gpt-4o-2024-08-06",
            "system_fingerprint": "fp_0123456789",
            "choices": [{ "index": choice, "delta": delta, "logprobs": logprobs, "finish_reason": reason }],
        });
        let text = format!("data: {chunk}\n\n");
        written += text.len();
        out.write_all(text.as_bytes()).map(|()| written)
    };
    for choice in 0..choices {
        let role = json!({ "role": "assistant", "content": "" });
        event(choice, role, Value::Null, Value::Null)?;
    }
    for turn in 0.. {
        let (delta, logprobs) = part(turn);
        if event(turn % choices, delta, logprobs, Value::Null)? >= bytes {
            break;
        }
    }
    for choice in 0..choices {
        event(choice, json!({}), Value::Null, "stop".into())?;
    }
    out.write_all(b"data: [DONE]\n\n")?;
    out.flush()
}

fn text(word: &str) -> (Value, Value) {
    (json!({ "content": word }), Value::Null)
}

/// A word with its log probability and two alternatives, as a server sends them for `top_logprobs`.
fn with_logprobs(word: &str, random: &mut Random) -> (Value, Value) {
    let mut entry = |word: &str| {
        let logprob = -(random.below(1_000_000) as f64) / 333_333.0;
        json!({ "token": word, "logprob": logprob, "bytes": word.as_bytes() })
    };
    let alternatives = [entry(word), entry(&word.to_uppercase())];
    let mut chosen = entry(word);
    chosen["top_logprobs"] = json!(alternatives);
    let logprobs = json!({ "content": [chosen], "refusal": null });
    (json!({ "content": word }), logprobs)
}
