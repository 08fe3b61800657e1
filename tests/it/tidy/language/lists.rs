//! The rejected words, the standard terms, and what is exempt.

/// Words that are rejected wherever they appear.
pub(super) const WORDS: [&str; 36] = [
    "news",
    "settle",
    "settled",
    "settles",
    "settling",
    "speak",
    "speaker",
    "speaking",
    "speaks",
    "spoil",
    "spoiled",
    "spoils",
    "spoilt",
    "spoke",
    "suspect",
    "suspected",
    "suspects",
    "tell",
    "teller",
    "telling",
    "tells",
    "tend",
    "tended",
    "tending",
    "told",
    "untold",
    "voice",
    "voices",
    "whoever",
    "whomever",
    "wish",
    "wished",
    "wishes",
    "manner",
    "manners",
    "shut",
];

/// Words that are standard terms in prose, but no names.
pub(super) const IN_IDENTIFIERS: [&str; 6] = ["look", "looks", "plain", "stand in", "way", "ways"];

/// Sequences of words that use an ordinary word for a concept of the code, or an inverted sentence.
pub(super) const PHRASES: [&str; 57] = [
    "a look",
    "another look",
    "be it",
    "behind the end",
    "comes whole",
    "each look",
    "every look",
    "fast way",
    "fast ways",
    "first look",
    "fn what",
    "fn who",
    "for ever",
    "had come",
    "has come",
    "next look",
    "no look",
    "of whatever",
    "on its way",
    "on the way",
    "on their way",
    "one look",
    "own look",
    "plain batch",
    "plain batches",
    "plain chunk",
    "plain chunks",
    "plain delta",
    "plain deltas",
    "plain piece",
    "plain pieces",
    "plain run",
    "plain runs",
    "plain update",
    "plain updates",
    "quick way",
    "shuts",
    "shutting",
    "slow way",
    "slow ways",
    "stand in for",
    "standing in for",
    "stands in for",
    "stood in for",
    "that look",
    "the look",
    "the way into",
    "the way of",
    "the way through",
    "the whole way",
    "this look",
    "way out of",
    "what came",
    "what comes",
    "what has come",
    "who looks",
    "who waits",
];

/// Sequences of words that contain a rejected word and are standard terms.
pub(super) const STANDARD_TERMS: [&str; 22] = [
    "all the way",
    "either way",
    "half way",
    "in a way that",
    "look ahead",
    "look behind",
    "look up",
    "looks up",
    "one way",
    "plain http",
    "plain text",
    "shut down",
    "shuts down",
    "shutting down",
    "tend to",
    "tends to",
    "text plain",
    "three way",
    "two way",
    "two ways",
    "way back",
    "way to",
];

/// A rejected word that has to stay where it is.
pub(super) struct Allowed {
    /// The file, or every file if it is empty.
    path: &'static str,
    /// Part of the line, or every line if it is empty.
    line: &'static str,
    #[expect(dead_code, reason = "read by people")]
    reason: &'static str,
}

pub(super) const ALLOWED: [Allowed; 9] = [
    Allowed {
        path: "tests/it/tidy/language.rs",
        line: "",
        reason: "the examples of the rules",
    },
    Allowed {
        path: "tests/it/tidy/language/lists.rs",
        line: "",
        reason: "the rules themselves",
    },
    Allowed {
        path: "",
        line: "--plain",
        reason: "an option of the command",
    },
    Allowed {
        path: "crates/unbraid-cli/src/live.rs",
        line: "plain",
        reason: "the same option",
    },
    Allowed {
        path: "crates/unbraid-cli/src/args/display.rs",
        line: "plain",
        reason: "the same option",
    },
    Allowed {
        path: "crates/unbraid-cli/src/commands/demo/scenario.rs",
        line: "Rain is no reason",
        reason: "an answer of the demo",
    },
    Allowed {
        path: "crates/unbraid-cli/tests/it/demo.rs",
        line: "Rain is no reason",
        reason: "the same answer",
    },
    Allowed {
        path: "",
        line: "Tell me a joke.",
        reason: "a prompt in examples",
    },
    Allowed {
        path: "crates/unbraid-cli/tests/it/chat.rs",
        line: "Tell me.",
        reason: "a prompt",
    },
];

impl Allowed {
    pub(super) fn allows(&self, path: &str, line: &str) -> bool {
        (self.path.is_empty() || self.path == path) && line.contains(self.line)
    }
}
