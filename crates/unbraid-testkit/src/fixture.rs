//! The streams that tests read: our own fixtures, and the corpus of recordings when it is at hand.
//!
//! A fixture is `tests/fixtures/<dialect>/<producer>-<what>.sse` and, beside it, the trace it must give (`.events`).
//! SSE comment lines at its head tell its provenance; one of them may hold options for the reader:
//!
//! ```text
//! : synthetic, after vLLM: two choices, two parallel calls each
//! : options expect-choices=1
//! ```
//!
//! A stream whose first byte is what it tests, or one read in strict mode, holds no comments: a `.txt` beside it does.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

/// The variable that says where the corpus lies.
pub const CORPUS_VARIABLE: &str = "UNBRAID_CORPUS";

/// One stream of `tests/fixtures`.
#[derive(Debug, Clone)]
pub struct Fixture {
    /// `dialect/producer-what`: the path below `tests/fixtures`, with `/`, without its extension.
    pub name: String,
    /// Where the `.sse` file lies.
    pub path: PathBuf,
    /// The whole stream, its comments included.
    pub bytes: Vec<u8>,
    /// How the stream is to be read.
    pub options: Options,
}

impl Fixture {
    /// Reads all fixtures, sorted by name.
    ///
    /// # Panics
    ///
    /// Panics when a file cannot be read or an option is not known: a test that silently reads nothing proves nothing.
    pub fn all() -> Vec<Self> {
        let root = fixtures_root();
        let mut found: Vec<Self> = sse_files(&root)
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
    /// Panics when there is no such fixture.
    pub fn named(name: &str) -> Self {
        let root = fixtures_root();
        let path = root.join(format!("{name}.sse"));
        Self::load(&root, path)
    }

    /// The trace beside the stream, if one has been blessed.
    pub fn expected_trace(&self) -> Option<String> {
        fs::read_to_string(self.trace_path()).ok()
    }

    /// Where that trace belongs.
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

/// How a stream is to be read; the default is how unbraid reads without being told anything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// `expect-choices=N`: how many choices were asked for; with 1 every index means choice 0 (E12).
    pub expect_choices: Option<u32>,
    /// `strict`: lines, payloads and deltas that the format does not allow are errors (R04, R07, R11, R14).
    pub strict: bool,
    /// `split-think`, `split-think=start`: `<think>` tags separate reasoning from content (C18).
    pub split_think: SplitThink,
    /// `usage-after-done`: usage that follows `[DONE]` counts (U13).
    pub usage_after_done: bool,
    /// `reasoning-keys=A,B`: the names under which reasoning comes, in the order of their priority (R5).
    pub reasoning_keys: Option<Vec<String>>,
}

/// Where reasoning inside the content begins.
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
    /// Reads the options from the comments at the head of a stream and from the `.txt` beside it.
    ///
    /// # Errors
    ///
    /// Gives back the first word that is no option.
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

/// The corpus of recorded streams, which is not part of the repository.
#[derive(Debug, Clone)]
pub enum Corpus {
    /// The variable is not set and nothing lies at the default place, named here: a test skips.
    NotSet(PathBuf),
    /// The variable is set and no stream lies where it points: a test fails, since someone asked for the corpus.
    Missing(PathBuf),
    /// The streams and where each was read, sorted by path.
    Streams(Vec<(PathBuf, Vec<u8>)>),
}

/// Reads the corpus from [`CORPUS_VARIABLE`], by default `../shared/corpus` beside the workspace.
///
/// # Panics
///
/// Panics when a file that is there cannot be read.
pub fn corpus() -> Corpus {
    corpus_at(env::var_os(CORPUS_VARIABLE).map(PathBuf::from))
}

fn corpus_at(told: Option<PathBuf>) -> Corpus {
    let set = told.is_some();
    let root = told.unwrap_or_else(|| workspace_root().join("../shared/corpus"));
    let mut paths = sse_files(&root);
    paths.sort();
    match (paths.is_empty(), set) {
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

/// Every `.sse` file below `dir`, in no order; none when there is no such directory.
fn sse_files(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(dir) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            found.extend(sse_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "sse") {
            found.push(path);
        }
    }
    found
}

fn name_below(root: &Path, path: &Path) -> String {
    let below = path.strip_prefix(root).unwrap_or(path).with_extension("");
    let parts: Vec<_> = below.iter().map(|part| part.to_string_lossy()).collect();
    parts.join("/")
}

fn read(path: &Path) -> Vec<u8> {
    fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests;
