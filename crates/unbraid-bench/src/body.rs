//! A realistic answer stream: eight randomly interleaved choices, a quarter of the chunks with tool call fragments, with
//! escapes and text outside ASCII, in the byte layout of the API.

use std::fmt::Write;

use bytes::Bytes;
use unbraid_core::ChoiceIndex;

use crate::random::Random;

/// The properties of a body besides its length.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) choices: usize,
    /// Whether each chunk ends with `"usage":null,"obfuscation":".."`, which the API sends by default.
    pub(crate) padded: bool,
}

pub(crate) const BRAIDED: Shape = Shape {
    choices: 8,
    padded: false,
};

/// A complete body, and the answer that every reader has to return.
#[derive(Debug)]
pub(crate) struct Body {
    pub(crate) bytes: Bytes,
    pub(crate) answer: Answer,
    pub(crate) chunks: usize,
    /// The end of each event, and the number of items that consumers receive from it.
    pub(crate) events: Vec<(usize, usize)>,
}

/// The number of choices whose text is kept. Some fixtures have an absurd index.
pub(crate) const MAX_CHOICES: usize = 4096;

/// The result of a stream: the text and the arguments of each choice, and the number of deltas.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) texts: Vec<String>,
    pub(crate) arguments: Vec<String>,
    pub(crate) items: usize,
}

impl Answer {
    pub(crate) fn new(choices: usize) -> Self {
        Self {
            texts: vec![String::new(); choices],
            arguments: vec![String::new(); choices],
            items: 0,
        }
    }

    /// Adds a delta of a choice's text, or of its call's arguments.
    pub(crate) fn keep(&mut self, choice: Option<ChoiceIndex>, is_arguments: bool, text: &str) {
        let choice = choice.map_or(0, |choice| choice.0 as usize);
        self.grow_to(choice);
        let texts = if is_arguments {
            &mut self.arguments
        } else {
            &mut self.texts
        };
        if let Some(kept) = texts.get_mut(choice) {
            kept.push_str(text);
        }
    }

    /// Makes room for a choice. One beyond [`MAX_CHOICES`] gets none, and only its items count.
    fn grow_to(&mut self, choice: usize) {
        if (self.texts.len()..MAX_CHOICES).contains(&choice) {
            self.texts.resize(choice + 1, String::new());
            self.arguments.resize(choice + 1, String::new());
        }
    }

    /// Sets the part of one choice.
    pub(crate) fn add(&mut self, choice: usize, part: Part) {
        self.grow_to(choice);
        self.items += part.items;
        if let (Some(text), Some(arguments)) =
            (self.texts.get_mut(choice), self.arguments.get_mut(choice))
        {
            *text = part.text;
            *arguments = part.arguments;
        }
    }
}

/// One choice's part of an answer.
#[derive(Debug, Default)]
pub(crate) struct Part {
    pub(crate) text: String,
    pub(crate) arguments: String,
    pub(crate) items: usize,
}

/// Writes the chunks of a stream, each for a random choice.
pub(crate) struct Writer {
    shape: Shape,
    random: Random,
    /// The number of chunks that each choice still has to send.
    left: Vec<usize>,
    planned: usize,
    answer: Answer,
}

/// The number of choices with a tool call. They are the last ones, and call the tool after a third of their chunks.
const CALLERS: usize = 3;

impl Writer {
    pub(crate) fn new(chunks: usize, shape: Shape) -> Self {
        Self {
            shape,
            random: Random::new(7),
            left: vec![chunks / shape.choices; shape.choices],
            planned: chunks / shape.choices,
            answer: Answer::new(shape.choices),
        }
    }

    /// Writes the next event and returns its number of items, or `None` when every choice has finished.
    pub(crate) fn event(&mut self, out: &mut String) -> Option<usize> {
        let open = self.left.iter().filter(|left| **left > 0).count();
        if open == 0 {
            return None;
        }
        let nth = self.random.below(open);
        let choice = (0..self.left.len())
            .filter(|choice| self.left.get(*choice).is_some_and(|left| *left > 0))
            .nth(nth)?;
        let left = self.left.get_mut(choice)?;
        *left -= 1;
        let (left, done) = (*left, self.planned - *left - 1);
        let calls = self.shape.choices >= 8 && choice + CALLERS >= self.shape.choices;
        let header = self.planned / 3;
        let (delta, reason, items) = if left == 0 {
            let reason = if calls { "\"tool_calls\"" } else { "\"stop\"" };
            ("{}".to_owned(), reason, 0)
        } else if done == 0 {
            let role = "{\"role\":\"assistant\",\"content\":\"\",\"refusal\":null}";
            (role.to_owned(), "null", 0)
        } else if calls && done == header {
            let call = "{\"tool_calls\":[{\"index\":0,\"id\":\"call_8fJk2mQx9LpR4vTn\",\"type\":\"function\",\"function\":{\"name\":\"write\",\"arguments\":\"\"}}]}";
            (call.to_owned(), "null", 0)
        } else if calls && done > header {
            (self.fragment(choice, done - header, left), "null", 1)
        } else {
            (self.text(choice), "null", 1)
        };
        self.answer.items += items;
        self.chunk(choice, &delta, reason, out);
        Some(items)
    }

    fn text(&mut self, choice: usize) -> String {
        let delta = self.random_delta();
        if let Some(text) = self.answer.texts.get_mut(choice) {
            text.push_str(delta.0);
        }
        format!("{{\"content\":\"{}\"}}", delta.1)
    }

    /// A fragment of `{"text":".."}`.
    fn fragment(&mut self, choice: usize, nth: usize, left: usize) -> String {
        let delta = match (nth, left) {
            (1, _) => ("{\"text\":\"", "{\\\"text\\\":\\\""),
            (_, 1) => ("\"}", "\\\"}"),
            _ if self.random.below(5) == 0 => ("\\n\\\"", "\\\\n\\\\\\\""),
            _ => WORDS[self.random.below(ASCII)],
        };
        if let Some(arguments) = self.answer.arguments.get_mut(choice) {
            arguments.push_str(delta.0);
        }
        format!(
            "{{\"tool_calls\":[{{\"index\":0,\"function\":{{\"arguments\":\"{}\"}}}}]}}",
            delta.1
        )
    }

    fn random_delta(&mut self) -> (&'static str, &'static str) {
        let rare = self.random.below(100);
        let (start, count) = match rare {
            0..80 => (0, ASCII),
            80..90 => (ASCII, NON_ASCII),
            _ => (ASCII + NON_ASCII, WORDS.len() - ASCII - NON_ASCII),
        };
        WORDS[start + self.random.below(count)]
    }

    fn chunk(&mut self, choice: usize, delta: &str, reason: &str, out: &mut String) {
        out.push_str("data: {\"id\":\"chatcmpl-AbCdEfGhIjKlMnOpQrStUvWxYz012\",\"object\":\"chat.completion.chunk\",\"created\":1730000000,\"model\":\"gpt-4o-2024-08-06\",\"service_tier\":\"default\",\"system_fingerprint\":\"fp_0123456789\",\"choices\":[{\"index\":");
        let _infallible = write!(
            out,
            "{choice},\"delta\":{delta},\"logprobs\":null,\"finish_reason\":{reason}}}]"
        );
        if self.shape.padded {
            let length = 1 + self.random.below(12);
            out.push_str(",\"usage\":null,\"obfuscation\":\"");
            out.extend("abcDEF123xyz".chars().take(length));
            out.push('"');
        }
        out.push_str("}\n\n");
    }

    pub(crate) fn answer(self) -> Answer {
        self.answer
    }
}

/// An event of a stream in which the text of each delta is its number.
#[derive(Debug, Clone)]
pub(crate) struct Numbered {
    pub(crate) bytes: Bytes,
    pub(crate) choice: usize,
    /// `None` if the event has no delta.
    pub(crate) number: Option<usize>,
}

/// A stream of `deltas` deltas: all roles, then rounds of all choices in random order, then all finish reasons.
pub(crate) fn numbered(deltas: usize, shape: Shape) -> Vec<Numbered> {
    let mut writer = Writer::new(deltas, shape);
    let mut event = |choice, number, delta: &str, reason| {
        let mut text = String::new();
        writer.chunk(choice, delta, reason, &mut text);
        Numbered {
            bytes: Bytes::from(text),
            choice,
            number,
        }
    };
    let mut order: Vec<usize> = (0..shape.choices).collect();
    let mut random = Random::new(5);
    let role = "{\"role\":\"assistant\",\"content\":\"\",\"refusal\":null}";
    let mut events: Vec<Numbered> = order
        .iter()
        .map(|choice| event(*choice, None, role, "null"))
        .collect();
    let mut number = 0;
    while number < deltas {
        for index in 1..order.len() {
            order.swap(index, random.below(index + 1));
        }
        for choice in order.iter().take(deltas - number) {
            let delta = format!("{{\"content\":\"{number}\"}}");
            events.push(event(*choice, Some(number), &delta, "null"));
            number += 1;
        }
    }
    events.extend((0..shape.choices).map(|choice| event(choice, None, "{}", "\"stop\"")));
    events.push(Numbered {
        bytes: Bytes::from_static(b"data: [DONE]\n\n"),
        choice: 0,
        number: None,
    });
    events
}

/// A body of about `chunks` chunks.
pub(crate) fn body(chunks: usize, shape: Shape) -> Body {
    let mut writer = Writer::new(chunks, shape);
    let (mut text, mut events) = (String::new(), Vec::new());
    while let Some(items) = writer.event(&mut text) {
        events.push((text.len(), items));
    }
    let chunks = events.len();
    text.push_str("data: [DONE]\n\n");
    events.push((text.len(), 0));
    Body {
        bytes: Bytes::from(text),
        answer: writer.answer(),
        chunks,
        events,
    }
}

/// Deltas as text and as JSON: ASCII without escapes, then other characters, then escapes.
const WORDS: [(&str, &str); 28] = [
    (" the", " the"),
    (" answer", " answer"),
    (" of", " of"),
    (" streams", " streams"),
    (",", ","),
    (" which", " which"),
    (" is", " is"),
    (" interleaved", " interleaved"),
    (".", "."),
    (" model", " model"),
    (" and", " and"),
    (" token", " token"),
    ("s", "s"),
    (" a", " a"),
    (" by", " by"),
    ("ing", "ing"),
    (" é", " é"),
    (" straße", " straße"),
    (" 日本", " 日本"),
    ("🚀", "🚀"),
    ("\n", "\\n"),
    ("\n\n", "\\n\\n"),
    (" \"", " \\\""),
    ("\\", "\\\\"),
    ("\t", "\\t"),
    ("é", "\\u00e9"),
    (" 🚀", " \\ud83d\\ude80"),
    ("\",", "\\\","),
];
const ASCII: usize = 16;
const NON_ASCII: usize = 4;
