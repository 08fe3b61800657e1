//! The functions that the fuzzers run. They accept any bytes and panic if unbraid violates an invariant.

mod decode;
mod demux;
mod dialects;
mod framing;
mod json;
mod records;

pub use decode::{Hits, compare, decode};
pub use demux::demux;
pub use dialects::dialects;
pub use framing::framing;
pub use json::json;
pub use records::records;

use crate::seeds;

/// A fuzz target.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// The name of its binary in `fuzz/fuzz_targets`.
    pub name: &'static str,
    /// The function, which panics if an invariant is violated.
    pub run: fn(&[u8]),
    /// Its corpus, derived from the fixtures.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Words to insert.
    pub words: &'static [&'static str],
}

/// Every target.
pub const TARGETS: [Target; 6] = [
    Target {
        name: "framing",
        run: framing,
        seeds: seeds::framing,
        words: LINES,
    },
    Target {
        name: "decode",
        run: decode,
        seeds: seeds::decode,
        words: CHUNKS,
    },
    Target {
        name: "demux",
        run: demux,
        seeds: seeds::demux,
        words: CHUNKS,
    },
    Target {
        name: "dialects",
        run: dialects,
        seeds: seeds::dialects,
        words: PROVIDERS,
    },
    Target {
        name: "json",
        run: json,
        seeds: seeds::json,
        words: JSON,
    },
    Target {
        name: "records",
        run: records,
        seeds: seeds::records,
        words: RECORDS,
    },
];

const LINES: &[&str] = &[
    "\n",
    "\r",
    "\r\n",
    "\n\n",
    "\r\r",
    "data: ",
    "data:",
    "data",
    "event: error\n",
    "event:",
    "id: 1\n",
    "retry: 1\n",
    ": comment\n",
    "[DONE]",
    "\u{FEFF}",
    "\u{FEFF}\u{FEFF}",
    "\u{EF}\u{BB}",
    "{",
    "}",
    "[",
    "]",
    ",",
    "\"",
    "\\",
    " ",
    "\t",
];

const RECORDS: &[&str] = &[
    "\u{1}\u{1}\u{1}",
    "\u{1}\u{0}\u{2}{}",
    "\u{2}\u{1}\u{0}\u{4}note\u{2}{}",
    "\u{3}\u{0}\u{1}",
    "\u{4}\u{0}\u{1}\u{4}stop",
    "\u{5}\u{1}\u{0}\u{2}{}",
    "\u{6}\u{2}{}",
    "\u{7}\u{5}error\u{2}{}",
    "\u{8}\u{1}x",
    "\u{0}",
    "\u{7f}",
    "\u{80}",
    "\n",
    "{\"endpoint\":\"/v1/completions\",\"created\":1}",
];

const PROVIDERS: &[&str] = &[
    "\n",
    "\n\ndata: ",
    "event: ping\ndata: {}\n\n",
    "data: [DONE]\n\n",
    "\"type\":\"message_start\",",
    "\"type\":\"content_block_stop\",",
    "\"type\":\"input_json_delta\",",
    "\"type\":\"thinking_delta\",",
    "\"type\":\"response.output_item.done\",",
    "\"type\":\"response.completed\",",
    "\"type\":\"message-end\",",
    "\"type\":\"tool-call-delta\",",
    "\"output_index\":1,",
    "\"item_id\":\"a\",",
    "\"call_id\":\"a\",",
    "\"index\":7,",
    "\"signature\":\"s\",",
    "\"finishReason\":\"STOP\",",
    "\"willContinue\":true,",
    "\"jsonPath\":\"$.a[0]\",",
    "\"functionCall\":{\"name\":\"f\"},",
    "\"thoughtSignature\":\"s\",",
    "\"done\":true,",
    "\"done_reason\":\"stop\",",
    "\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":{}}}],",
    "\"contentBlockIndex\":1,",
    "\"bytes\":\"e30=\",",
    "\"error\":{\"message\":\"m\"},",
    "\"choices\":[],",
    "{\"",
    "\\ud83d",
    "\\ude00",
    "null",
    "{",
    "}",
    "[",
    "]",
    "\"",
];

const CHUNKS: &[&str] = &[
    "\n",
    "\n\ndata: ",
    "data: [DONE]\n\n",
    "event: error\n",
    "{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}",
    "{\"choices\":[{\"index\":1,\"delta\":{},\"finish_reason\":\"stop\"}]}",
    "\"index\":1,",
    "\"index\":0",
    "\"delta\":{},",
    "\"content\":\"x\",",
    "\"reasoning_content\":\"r\",",
    "\"refusal\":\"no\",",
    "\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{\"}}],",
    "\"function_call\":{\"name\":\"f\",\"arguments\":\"1\"},",
    "\"finish_reason\":\"stop\",",
    "\"usage\":{\"total_tokens\":3},",
    "\"error\":{\"message\":\"m\"},",
    "\"obfuscation\":\"x\",",
    "\"role\":\"assistant\",",
    "\"logprobs\":{\"content\":[1]},",
    "\"x\":[1,{\"y\":null}],",
    "\\ud83d",
    "\\ude00",
    "\\u0000",
    "\\\"",
    "null",
    "true",
    "1e999",
    "-0",
    "4294967296",
    "{",
    "}",
    "[",
    "]",
    "\"",
    "\\",
    ",",
    ":",
    " ",
];

const JSON: &[&str] = &[
    "{}",
    "[]",
    "{",
    "}",
    "[",
    "]",
    "\"",
    "\\",
    ":",
    ",",
    " ",
    "\n",
    "\"a\":",
    "\"answer\":",
    "null",
    "true",
    "fals",
    "-",
    "1",
    "0",
    "1e5",
    "1.5",
    "1e999",
    "\\n",
    "\\u00e9",
    "\\ud83d",
    "\\ude00",
    "\\d",
    "\\u12",
    "é",
    "😀",
    "\u{1}",
    "<think>",
    "\u{3000}",
    "{\"a\":",
    "[[[[[[[[",
];
