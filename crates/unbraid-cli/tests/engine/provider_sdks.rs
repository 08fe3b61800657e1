//! Compares unbraid with the Python libraries of other providers, which share no code with it. Both read the fixtures from
//! `unbraid replay`.

mod different;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{self, Write},
    path::Path,
    process::Command,
};

use different::DIFFERENT;
use serde_json::{Value, json};
use unbraid_testkit::fixture::Fixture;

use crate::{UNBRAID, engine::Server, python::Script};

/// The dialects, whose libraries have the same names in `sdks.py`. That of Bedrock parses the frames and nothing else.
const DIALECTS: [&str; 5] = ["anthropic", "cohere", "gemini", "ollama", "responses"];

/// The libraries in a separate process. Dropping it kills the process.
struct Sdks(Script);

impl Sdks {
    fn start() -> Option<Self> {
        Script::start("sdks.py").map(Self)
    }

    /// What the library of a dialect reads from a server.
    fn read(&mut self, dialect: &str, url: &str) -> Value {
        let question = json!({ "sdk": dialect, "url": url });
        let line = self.0.ask(&question);
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{dialect}: {error}: {line}"))
    }
}

/// The stream without the comments that state its provenance, which its server did not send.
fn bytes_as_sent(fixture: &Fixture) -> &[u8] {
    let mut bytes = fixture.bytes.as_slice();
    let comments: [&[u8]; 3] = [b": synthetic", b": options", b": ids"];
    while comments.iter().any(|comment| bytes.starts_with(comment)) {
        let end = bytes.iter().position(|byte| *byte == b'\n');
        bytes = bytes.get(end.map_or(bytes.len(), |end| end + 1)..).unwrap();
    }
    while let Some(rest) = bytes
        .strip_prefix(b"\r\n")
        .or_else(|| bytes.strip_prefix(b"\n"))
    {
        bytes = rest;
    }
    bytes
}

/// What `unbraid collect` reads, in the form of `sdks.py`.
fn collected(file: &Path) -> Value {
    let output = Command::new(UNBRAID).arg("collect").arg(file).output();
    let output = output.unwrap();
    let response: Value = serde_json::from_slice(&output.stdout).unwrap();
    let choices = response["choices"].as_array().unwrap().iter();
    let choices = choices.map(|choice| {
        let message = &choice["message"];
        let calls = message["tool_calls"].as_array().into_iter().flatten();
        let calls = calls.map(|call| match call.get("custom") {
            Some(custom) => json!([custom["name"], custom["input"]]),
            None => {
                let arguments = call["function"]["arguments"].as_str().unwrap();
                let value: Value = serde_json::from_str(arguments).unwrap_or_else(|_| {
                    let is_empty = arguments.trim().is_empty();
                    if is_empty {
                        json!({})
                    } else {
                        json!(arguments)
                    }
                });
                json!([call["function"]["name"], value])
            }
        });
        json!({
            "index": choice["index"],
            "text": message["content"].as_str().unwrap_or_default(),
            "calls": calls.collect::<Vec<_>>(),
            "finish_reason": choice["finish_reason"],
        })
    });
    choices.collect()
}

/// The streams. A response that was not streamed is not what the libraries ask for here.
fn streams() -> impl Iterator<Item = Fixture> {
    let fixtures = Fixture::all().into_iter();
    fixtures.filter(|fixture| {
        let is_stream = fixture.path.extension().is_some_and(|kind| kind != "json");
        let is_array = fixture.bytes.trim_ascii_start().starts_with(b"[");
        DIALECTS.contains(&fixture.dialect()) && (is_stream || is_array)
    })
}

#[test]
fn the_libraries_of_the_providers_read_the_same_except_for_known_reasons() {
    let Some(mut sdks) = Sdks::start() else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let (mut equal, mut different) = (BTreeMap::new(), BTreeMap::new());
    let mut missing = BTreeSet::new();
    for fixture in streams() {
        let dialect = fixture.dialect().to_owned();
        let file = dir.path().join(fixture.path.file_name().unwrap());
        fs::write(&file, bytes_as_sent(&fixture)).unwrap();
        let server = Server::start(Command::new(UNBRAID).arg("replay").arg(&file));
        let url = server.base_url.strip_suffix("/v1").unwrap();
        let theirs = sdks.read(&dialect, url);
        if let Some(reason) = theirs["missing"].as_str() {
            if missing.insert(dialect.clone()) {
                let skipped = format!("\nskipped the library of {dialect}: {reason}");
                writeln!(io::stderr(), "{skipped}").unwrap();
            }
            continue;
        }
        let ours = collected(&file);
        if theirs["choices"] == ours {
            *equal.entry(dialect).or_insert(0) += 1;
        } else {
            different.insert(fixture.name, format!("{theirs}\n{ours}"));
        }
    }
    let is_present = |name: &str| {
        let (dialect, _) = name.split_once('/').unwrap();
        !missing.contains(dialect)
    };
    let expected = DIFFERENT.iter().filter(|(name, _)| is_present(name));
    let expected: BTreeSet<&str> = expected.map(|(name, _)| *name).collect();
    let found: BTreeSet<&str> = different.keys().map(String::as_str).collect();
    let unexpected: Vec<_> = found.difference(&expected).collect();
    let details: Vec<_> = unexpected.iter().map(|name| &different[**name]).collect();
    assert!(unexpected.is_empty(), "{unexpected:?}\n{details:#?}");
    let solved: Vec<_> = expected.difference(&found).collect();
    assert!(solved.is_empty(), "read equally by now: {solved:?}");
    for dialect in DIALECTS {
        let least = 3;
        let count = equal.get(dialect).copied().unwrap_or(0);
        assert!(
            missing.contains(dialect) || count >= least,
            "only {count} streams of {dialect} are read equally"
        );
    }
}
