//! A client that loses its connection and resumes.

use serde_json::{Value, json};
use unbraid_testkit::cut::Rng;

use super::{Target, projection::Shown};
use crate::support::{Reader, TestGateway, parse_events, send};

/// Where a reader without a cursor begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Begin {
    Start,
    Snapshot,
    Tail,
}

#[derive(Debug)]
pub(super) struct Client {
    pub(super) target: Target,
    begin: Begin,
    /// The share of connections that are dropped.
    drops: f64,
    rng: Rng,
    /// Everything but the snapshot or the position.
    pub(super) shown: Vec<Shown>,
    /// The snapshot or the position, with its id.
    first: Option<(u64, Value)>,
}

impl Client {
    pub(super) fn new(target: Target, begin: Begin, rng: &mut Rng) -> Self {
        Self {
            target,
            begin,
            drops: [0.0, 0.5, 0.9][rng.below(3)],
            rng: Rng::new(rng.next_u64()),
            shown: Vec::new(),
            first: None,
        }
    }

    /// A client that reads from the start to the end.
    pub(super) fn undisturbed(target: Target) -> Self {
        let mut client = Self::new(target, Begin::Start, &mut Rng::new(0));
        client.drops = 0.0;
        client
    }

    /// Reads to the terminal event, over as many connections as it takes.
    pub(super) async fn run(&mut self, gateway: &TestGateway, id: &str, mut post: Option<Reader>) {
        if self.begin == Begin::Tail || self.begin == Begin::Snapshot {
            let pause = self.rng.below(40) as u64;
            tokio::time::sleep(std::time::Duration::from_millis(pause)).await;
        }
        for _ in 0..2000 {
            let reader = match post.take() {
                Some(post) => post,
                None => match self.connect(gateway, id).await {
                    Some(reader) => reader,
                    None => return,
                },
            };
            self.read(reader).await;
            if self.shown.last().is_some_and(is_terminal) && self.rng.chance(0.5) {
                return;
            }
        }
        panic!("{self:?} makes no progress");
    }

    fn cursor(&self) -> Option<u64> {
        let last = self.shown.last().map(|(id, ..)| *id);
        last.or_else(|| self.first.as_ref().map(|(id, _)| *id))
    }

    /// `None` if nothing more is to come.
    async fn connect(&mut self, gateway: &TestGateway, id: &str) -> Option<Reader> {
        let path = format!("/v1/streams/{id}/{}", self.target.path());
        let request = match (self.cursor(), self.begin) {
            (Some(cursor), _) if self.rng.chance(0.5) => {
                gateway.get(&format!("{path}after={cursor}"))
            }
            // The header takes precedence over the URL, which an `EventSource` repeats.
            (Some(cursor), _) => gateway
                .get(&format!("{path}after=0&from=tail"))
                .header("last-event-id", cursor.to_string()),
            (None, Begin::Start) => gateway.get(&path),
            (None, Begin::Snapshot) => gateway.get(&format!("{path}from=snapshot")),
            (None, Begin::Tail) => gateway.get(&format!("{path}from=tail")),
        };
        let response = send(request).await;
        if response.status() == 204 {
            assert!(self.shown.last().is_some_and(is_terminal), "{self:?}");
            return None;
        }
        assert_eq!(response.status(), 200, "{path}");
        Some(Reader::new(response))
    }

    /// Reads one connection until it ends or is dropped. As the standard says, an incomplete event at its end is discarded.
    async fn read(&mut self, mut reader: Reader) {
        let limit = self.rng.chance(self.drops).then(|| self.rng.below(1500));
        while !reader.is_over && limit.is_none_or(|limit| reader.text.len() < limit) {
            reader.rest_or_cut().await;
        }
        assert!(!reader.has_failed, "the gateway ends its bodies cleanly");
        let complete = reader.text.rfind("\n\n").map_or(0, |end| end + 2);
        for event in parse_events(&reader.text[..complete]) {
            let id = event.id.expect("every event has an id");
            assert!(
                self.cursor().is_none_or(|cursor| cursor < id),
                "ids increase"
            );
            let mut data = super::projection::value(&event.data);
            if data["error"]["type"] == "stream_error" {
                data = json!({ "error": data["error"]["code"] });
            }
            if self.begin != Begin::Start && self.first.is_none() {
                assert!(data["unbraid"].is_object(), "{data}");
                self.first = Some((id, data));
            } else {
                self.shown.push((id, event.name, data));
            }
        }
    }

    /// Compares everything that it has got with everything that the view has.
    #[track_caller]
    pub(super) fn check(&self, all: &[Shown]) {
        let Some((position, first)) = &self.first else {
            assert_eq!(self.shown, all, "{:?}", self.target);
            return;
        };
        let terminal = all.last().unwrap().0;
        let rest = all.iter();
        let rest: Vec<_> = rest
            .filter(|(id, ..)| id > position || *id == terminal)
            .cloned()
            .collect();
        assert_eq!(self.shown, rest, "{:?} {:?}", self.target, self.begin);
        if self.begin == Begin::Tail {
            assert_eq!(first["unbraid"]["position"], *position);
            assert_eq!(first["choices"], json!([]));
            return;
        }
        assert_eq!(first["unbraid"]["seq"], *position);
        let before: Vec<_> = all.iter().filter(|(id, ..)| id <= position).collect();
        for index in 0..3 {
            let shown = content(first, index);
            let expected: String = before
                .iter()
                .map(|(.., data)| content(data, index))
                .collect();
            assert_eq!(shown, expected, "{:?}", self.target);
        }
    }
}

/// The content of one choice in a chunk.
fn content(chunk: &Value, index: u32) -> String {
    let entries = chunk["choices"].as_array();
    let entries = entries.into_iter().flatten();
    let own = entries.filter(|entry| entry["index"] == index);
    own.filter_map(|entry| entry["delta"]["content"].as_str())
        .collect()
}

fn is_terminal((_, _, data): &Shown) -> bool {
    data == "[DONE]" || !data["error"].is_null()
}
