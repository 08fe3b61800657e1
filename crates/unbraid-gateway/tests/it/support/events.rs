//! Reads event streams as the WHATWG standard says, and keeps what a reader has got.

use serde_json::Value;

use super::soon;

/// One dispatched event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) id: Option<u64>,
    pub(crate) name: Option<String>,
    pub(crate) data: String,
}

impl Event {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.data).unwrap()
    }

    /// The text of the only choice's delta.
    pub(crate) fn text(&self) -> String {
        let json: Value = serde_json::from_str(&self.data).unwrap_or_default();
        json["choices"][0]["delta"]["content"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }
}

/// Parses complete events. A blank line that does not follow data fails the test: openai-python cannot read it.
pub(crate) fn parse_events(text: &str) -> Vec<Event> {
    let mut events = Vec::new();
    let (mut id, mut name, mut data): (Option<u64>, Option<String>, Vec<&str>) =
        (None, None, Vec::new());
    for line in text.split('\n') {
        match line.split_once(": ").unwrap_or((line, "")) {
            ("", "") if line.is_empty() => {
                if data.is_empty() {
                    continue;
                }
                events.push(Event {
                    id: id.take(),
                    name: name.take(),
                    data: data.join("\n"),
                });
                data.clear();
            }
            ("data", value) => data.push(value),
            ("id", value) => id = Some(value.parse().unwrap()),
            ("event", value) => name = Some(value.to_owned()),
            ("retry", value) => assert_eq!(value, "1000"),
            ("", "ping") => {}
            other => panic!("unexpected line: {other:?}"),
        }
    }
    events
}

/// A response that is read piece by piece.
pub(crate) struct Reader {
    response: reqwest::Response,
    /// Everything so far.
    pub(crate) text: String,
    pub(crate) is_over: bool,
    /// Whether the connection was lost in the middle of the body.
    pub(crate) has_failed: bool,
}

impl Reader {
    pub(crate) fn new(response: reqwest::Response) -> Self {
        Self {
            response,
            text: String::new(),
            is_over: false,
            has_failed: false,
        }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.response
            .headers()
            .get(name)
            .map(|value| value.to_str().unwrap())
    }

    /// Reads until the text contains something.
    pub(crate) async fn until(&mut self, part: &str) -> &mut Self {
        while !self.text.contains(part) {
            assert!(
                !self.is_over,
                "the stream ended without {part:?}: {}",
                self.text
            );
            self.read().await;
        }
        self
    }

    /// Reads to the end.
    pub(crate) async fn rest(&mut self) -> Vec<Event> {
        while !self.is_over {
            self.read().await;
        }
        self.events()
    }

    /// Reads once more, whatever the body is.
    pub(crate) async fn rest_or_cut(&mut self) {
        self.read().await;
    }

    pub(crate) fn events(&self) -> Vec<Event> {
        parse_events(&self.text)
    }

    async fn read(&mut self) {
        match soon(self.response.chunk()).await.expect("the stream hangs") {
            Ok(Some(bytes)) => self.text.push_str(std::str::from_utf8(&bytes).unwrap()),
            Ok(None) => self.is_over = true,
            Err(_) => {
                self.is_over = true;
                self.has_failed = true;
            }
        }
    }
}
