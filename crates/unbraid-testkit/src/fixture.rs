//! The streams that tests read: our own fixtures, and the corpus of recordings where it is available.
//!
//! A fixture is `tests/fixtures/<dialect>/<producer>-<what>.sse` and its expected trace (`.events`) in the same directory.
//! SSE comment lines at its head state its provenance. One of them may contain options for the reader:
//!
//! ```text
//! : synthetic, after vLLM: two choices, two parallel calls each
//! : options expect-choices=1
//! ```
//!
//! A stream that tests its first byte, or that is read in strict mode, has these lines in a `.txt` file instead.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

/// The environment variable with the path of the corpus.
pub const CORPUS_VARIABLE: &str = "UNBRAID_CORPUS";

/// One stream of `tests/fixtures`.
#[derive(Debug, Clone)]
pub struct Fixture {
    /// `dialect/producer-what`: the path below `tests/fixtures`, with `/`, without its extension.
    pub name: String,
    /// The path of the stream.
    pub path: PathBuf,
    /// The whole stream, including its comments.
    pub bytes: Vec<u8>,
    /// How to read the stream.
    pub options: Options,
}

impl Fixture {
    /// Reads all fixtures, sorted by name.
    ///
    /// # Panics
    ///
    /// Panics if a file cannot be read or an option is unknown, because a test that reads nothing would pass.
    pub fn all() -> Vec<Self> {
        let root = fixtures_root();
        let mut found: Vec<Self> = stream_files(&root)
            .into_iter()
            .map(|path| Self::load(&root, path))
            .collect();
        found.sort_by(|a, b| a.name.cmp(&b.name));
        found
    }

    /// Reads the fixture of this name, e.g. `openai_chat/vllm-two-choices-parallel-tools`.
    ///
    /// # Panics
    ///
    /// Panics if there is no such fixture.
    pub fn named(name: &str) -> Self {
        let root = fixtures_root();
        let mut paths = EXTENSIONS
            .map(|extension| root.join(format!("{name}.{extension}")))
            .into_iter();
        let path = paths.find(|path| path.exists());
        let path = path.unwrap_or_else(|| panic!("there is no fixture {name}"));
        Self::load(&root, path)
    }

    /// The expected trace, if it has been written.
    pub fn expected_trace(&self) -> Option<String> {
        fs::read_to_string(self.trace_path()).ok()
    }

    /// The path of the expected trace.
    pub fn trace_path(&self) -> PathBuf {
        self.path.with_extension("events")
    }

    /// The first part of the name: the dialect, or `broken`.
    pub fn dialect(&self) -> &str {
        self.name.split('/').next().unwrap_or_default()
    }

    fn load(root: &Path, path: PathBuf) -> Self {
        let bytes = read(&path);
        let notes = fs::read_to_string(path.with_extension("txt")).unwrap_or_default();
        let options = Options::read(&bytes, &notes)
            .unwrap_or_else(|word| panic!("{}: unknown option `{word}`", path.display()));
        Self {
            name: name_below(root, &path),
            path,
            bytes,
            options,
        }
    }
}

/// How to read a stream. The default matches unbraid's default configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// `expect-choices=N`: how many choices were requested. With 1, every index means choice 0 (E12).
    pub expect_choices: Option<u32>,
    /// `strict`: lines, payloads and deltas that violate the format are errors (R04, R07, R11, R14).
    pub strict: bool,
    /// `split-think`, `split-think=start`: `<think>` tags separate reasoning from content (C18).
    pub split_think: SplitThink,
    /// `usage-after-done`: usage that follows `[DONE]` counts (U13).
    pub usage_after_done: bool,
    /// `reasoning-keys=A,B`: the field names of reasoning, in the order of their priority (R5).
    pub reasoning_keys: Option<Vec<String>>,
}

/// Where reasoning inside the content starts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SplitThink {
    /// Nowhere: tags are text.
    #[default]
    Never,
    /// At `<think>`.
    AtTag,
    /// At the start of the answer.
    AtStart,
}

impl Options {
    /// Reads the options from the comments at the head of a stream and from its `.txt` file.
    ///
    /// # Errors
    ///
    /// Returns the first word that is not an option.
    pub fn read(stream: &[u8], notes: &str) -> Result<Self, String> {
        let head = String::from_utf8_lossy(stream);
        let comments = head.lines().map_while(|line| line.strip_prefix(':'));
        let mut options = Self::default();
        for line in comments.chain(notes.lines()) {
            if let Some(words) = line.trim().strip_prefix("options ") {
                words
                    .split_whitespace()
                    .try_for_each(|word| options.set(word))?;
            }
        }
        Ok(options)
    }

    fn set(&mut self, word: &str) -> Result<(), String> {
        match word.split_once('=') {
            None if word == "strict" => self.strict = true,
            None if word == "split-think" => self.split_think = SplitThink::AtTag,
            None if word == "usage-after-done" => self.usage_after_done = true,
            Some(("split-think", "start")) => self.split_think = SplitThink::AtStart,
            Some(("expect-choices", n)) => {
                self.expect_choices = Some(n.parse().map_err(|_| word.to_owned())?);
            }
            Some(("reasoning-keys", keys)) => {
                self.reasoning_keys = Some(keys.split(',').map(str::to_owned).collect());
            }
            _ => return Err(word.to_owned()),
        }
        Ok(())
    }
}

/// The corpus of recorded streams, which is not in the repository.
#[derive(Debug, Clone)]
pub enum Corpus {
    /// The variable is not set, and the default directory, named here, has no streams. Tests skip.
    NotSet(PathBuf),
    /// The variable is set, and its directory has no streams. Tests fail, because the corpus was requested.
    Missing(PathBuf),
    /// The streams with their paths, sorted by path.
    Streams(Vec<(PathBuf, Vec<u8>)>),
}

/// Reads the corpus from [`CORPUS_VARIABLE`], by default from `../shared/corpus` relative to the workspace.
///
/// # Panics
///
/// Panics if a file cannot be read.
pub fn corpus() -> Corpus {
    corpus_at(env::var_os(CORPUS_VARIABLE).map(PathBuf::from))
}

fn corpus_at(path: Option<PathBuf>) -> Corpus {
    let is_set = path.is_some();
    let root = path.unwrap_or_else(|| workspace_root().join("../shared/corpus"));
    let mut paths = stream_files(&root);
    paths.sort();
    match (paths.is_empty(), is_set) {
        (true, true) => Corpus::Missing(root),
        (true, false) => Corpus::NotSet(root),
        (false, _) => Corpus::Streams(
            paths
                .into_iter()
                .map(|path| (path.clone(), read(&path)))
                .collect(),
        ),
    }
}

/// The directory of the fixtures.
pub fn fixtures_root() -> PathBuf {
    workspace_root().join("tests/fixtures")
}

/// The directory of the workspace.
pub fn workspace_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The extensions of streams: events, JSON lines, a body that is not streamed, and binary messages.
pub const EXTENSIONS: [&str; 4] = ["sse", "ndjson", "json", "bin"];

/// Every stream below `dir`, in any order. A missing directory has none.
fn stream_files(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(dir) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            found.extend(stream_files(&path));
        } else if path
            .extension()
            .is_some_and(|extension| EXTENSIONS.iter().any(|known| extension == *known))
        {
            found.push(path);
        }
    }
    found
}

fn name_below(root: &Path, path: &Path) -> String {
    let relative = path.strip_prefix(root).unwrap_or(path).with_extension("");
    let parts: Vec<_> = relative.iter().map(|part| part.to_string_lossy()).collect();
    parts.join("/")
}

fn read(path: &Path) -> Vec<u8> {
    fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests;
