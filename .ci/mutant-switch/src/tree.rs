//! The copy of the repository in which the mutants are: writes it, and builds it until all that is in it compiles.
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{fs, io};

use serde_json::Value;

use crate::list::Mutant;
use crate::rewrite::{Rewritten, rewrite};

pub type Failure = Box<dyn std::error::Error>;

/// The function behind each switch. Reading the environment once keeps the switches cheap.
const SWITCH: &str = r#"
pub(crate) fn __mutant(number: usize) -> bool {
    static CHOSEN: std::sync::OnceLock<Option<usize>> = std::sync::OnceLock::new();
    *CHOSEN.get_or_init(|| std::env::var("UNBRAID_MUTANT").ok()?.parse().ok()) == Some(number)
}
"#;

/// A test binary, and where cargo would run it.
pub struct Tests {
    pub name: String,
    pub program: PathBuf,
    pub directory: PathBuf,
}

pub struct Tree<'a> {
    /// Two copies: one to find out what compiles, and one for the tests, of which cargo need not build again what has
    /// not changed since the last run.
    check: PathBuf,
    tests: PathBuf,
    target: PathBuf,
    mutants: &'a [Mutant],
    active: BTreeSet<usize>,
    /// Mutants that do not compile.
    pub unviable: BTreeSet<usize>,
    /// Mutants that need a build of their own.
    pub left: BTreeSet<usize>,
}

impl<'a> Tree<'a> {
    /// Copies the repository in the current directory into `out`, without what git ignores.
    pub fn copy(out: &Path, mutants: &'a [Mutant]) -> Result<Self, Failure> {
        let (check, tests) = (out.join("check"), out.join("tree"));
        let mutated: BTreeSet<&str> = mutants
            .iter()
            .map(|m| m.file.as_str())
            .chain(LIBRARIES)
            .collect();
        let listed = Command::new("git")
            .args([
                "ls-files",
                "-z",
                "--cached",
                "--others",
                "--exclude-standard",
            ])
            .output()?;
        for file in String::from_utf8(listed.stdout)?.split_terminator('\0') {
            if !mutated.contains(file) && Path::new(file).is_file() {
                let content = fs::read(file)?;
                write_changed(&check.join(file), &content)?;
                write_changed(&tests.join(file), &content)?;
            }
        }
        let active = (0..mutants.len()).collect();
        let target = out.join("build");
        Ok(Self {
            check,
            tests,
            target,
            mutants,
            active,
            unviable: BTreeSet::new(),
            left: BTreeSet::new(),
        })
    }

    /// The mutants that the tests have.
    pub fn active(&self) -> &BTreeSet<usize> {
        &self.active
    }

    /// Builds the tests without the mutants that do not compile.
    pub fn build(&mut self, packages: &[&str]) -> Result<Vec<Tests>, Failure> {
        let selected = packages.iter().flat_map(|package| ["--package", package]);
        let selected: Vec<&str> = ["--lib", "--test", "it"]
            .into_iter()
            .chain(selected)
            .collect();
        loop {
            let files = self.write(&self.check.clone())?;
            let check = [
                &["check", "--profile", "test", "--keep-going"],
                &selected[..],
            ]
            .concat();
            let (succeeds, messages) = self.cargo(&self.check, &check)?;
            if succeeds {
                break;
            }
            self.drop_unviable(&messages, &files)?;
        }
        self.write(&self.tests.clone())?;
        let (succeeds, messages) = self.cargo(
            &self.tests,
            &[&["test", "--no-run"], &selected[..]].concat(),
        )?;
        if !succeeds {
            return Err("the tests compile, but cannot be built".into());
        }
        Ok(messages.iter().filter_map(test_binary).collect())
    }

    /// Whether cargo succeeds, and what it says.
    fn cargo(&self, root: &Path, arguments: &[&str]) -> Result<(bool, Vec<Value>), Failure> {
        let output = Command::new("cargo")
            .args(arguments)
            .args(["--message-format", "json", "--quiet"])
            .env("CARGO_TARGET_DIR", &self.target)
            .current_dir(root)
            .stderr(Stdio::inherit())
            .output()?;
        let messages = String::from_utf8(output.stdout)?;
        let messages = messages
            .lines()
            .map(serde_json::from_str)
            .collect::<Result<_, _>>()?;
        Ok((output.status.success(), messages))
    }

    fn drop_unviable(
        &mut self,
        messages: &[Value],
        files: &BTreeMap<String, Rewritten>,
    ) -> Result<(), Failure> {
        let errors = messages
            .iter()
            .map(|message| &message["message"])
            .filter(|m| m["level"] == "error");
        let mut others = String::new();
        let before = self.active.len();
        for error in errors {
            let blamed = blamed(error, files);
            if blamed.is_empty() {
                others.push_str(error["rendered"].as_str().unwrap_or_default());
            }
            self.drop_all(&blamed, error["code"]["code"].as_str());
        }
        if self.active.len() == before {
            return Err(format!(
                "the copy does not build, and that is no mutant's fault:\n{others}"
            )
            .into());
        }
        Ok(())
    }

    fn drop_all(&mut self, numbers: &BTreeSet<usize>, code: Option<&str>) {
        for number in numbers {
            self.active.remove(number);
            // E0015: a switch in a constant. The mutant itself may be fine in both cases.
            let own_build = code == Some("E0015") || self.mutants[*number].returns_impl();
            if own_build {
                &mut self.left
            } else {
                &mut self.unviable
            }
            .insert(*number);
        }
    }

    /// Writes the files that have mutants.
    fn write(&mut self, root: &Path) -> Result<BTreeMap<String, Rewritten>, Failure> {
        let mut by_file: BTreeMap<&str, Vec<usize>> =
            LIBRARIES.map(|file| (file, Vec::new())).into();
        for (number, mutant) in self.mutants.iter().enumerate() {
            let numbers = by_file.entry(&mutant.file).or_default();
            if self.active.contains(&number) {
                numbers.push(number);
            }
        }
        let mut files = BTreeMap::new();
        for (file, numbers) in by_file {
            let source = fs::read_to_string(file)?;
            let mut rewritten =
                rewrite(&source, self.mutants, &numbers).map_err(|e| format!("{file}: {e}"))?;
            if LIBRARIES.contains(&file) {
                // A constant that overflows is a mutant like any other: it panics.
                rewritten
                    .text
                    .insert_str(0, "#![allow(arithmetic_overflow, unconditional_panic)]\n");
                rewritten.text.push_str(SWITCH);
            }
            write_changed(&root.join(file), rewritten.text.as_bytes())?;
            for number in &rewritten.left {
                self.active.remove(number);
                self.left.insert(*number);
            }
            files.insert(file.to_owned(), rewritten);
        }
        Ok(files)
    }
}

/// The roots of the crates that have mutants.
const LIBRARIES: [&str; 2] = [
    "crates/unbraid-core/src/lib.rs",
    "crates/unbraid/src/lib.rs",
];

/// What has not changed keeps its time, so that cargo does not build it again.
fn write_changed(path: &Path, content: &[u8]) -> io::Result<()> {
    if fs::read(path).is_ok_and(|old| old == content) {
        return Ok(());
    }
    fs::create_dir_all(path.parent().unwrap_or(path))?;
    fs::write(path, content)
}

fn test_binary(artifact: &Value) -> Option<Tests> {
    let program = PathBuf::from(artifact["executable"].as_str()?);
    let directory = Path::new(artifact["manifest_path"].as_str()?)
        .parent()?
        .to_owned();
    artifact["profile"]["test"].as_bool()?.then_some(())?;
    let name = format!(
        "{}:{}",
        directory.file_name()?.to_str()?,
        artifact["target"]["name"].as_str()?
    );
    Some(Tests {
        name,
        program,
        directory,
    })
}

/// The mutants whose code an error points at; if there are none, those of the innermost switch around it.
fn blamed(error: &Value, files: &BTreeMap<String, Rewritten>) -> BTreeSet<usize> {
    let mut inside = BTreeSet::new();
    let mut around: Option<(usize, BTreeSet<usize>)> = None;
    for span in error["spans"].as_array().into_iter().flatten() {
        let Some(file) = span["file_name"].as_str().and_then(|name| files.get(name)) else {
            continue;
        };
        let at = |key: &str| span[key].as_u64().unwrap_or(0) as usize;
        let range = at("byte_start")..at("byte_end");
        inside.extend(
            file.mutants
                .iter()
                .filter(|(code, _)| contains(code, &range))
                .map(|(_, number)| *number),
        );
        for (place, number) in file
            .places
            .iter()
            .filter(|(place, _)| contains(place, &range))
        {
            match &mut around {
                Some((size, numbers)) if *size == place.len() => drop(numbers.insert(*number)),
                Some((size, _)) if *size < place.len() => {}
                _ => around = Some((place.len(), BTreeSet::from([*number]))),
            }
        }
    }
    if inside.is_empty() {
        around.map(|(_, numbers)| numbers).unwrap_or_default()
    } else {
        inside
    }
}

fn contains(outer: &Range<usize>, inner: &Range<usize>) -> bool {
    outer.start <= inner.start && inner.end <= outer.end
}
