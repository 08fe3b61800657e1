//! No module imports from one that imports from it. A module and the modules inside it count as one: they may share what they
//! like, but not with a module elsewhere that they are used by.

use std::collections::{BTreeMap, BTreeSet};

use super::source::{SpanKind, files, spans};

/// A module's path within its crate; empty for the root.
type Path = Vec<String>;

/// The modules of one crate.
struct Modules {
    sources: BTreeMap<Path, String>,
    /// Where a name that a module re-exports comes from.
    exports: BTreeMap<(Path, String), Path>,
}

impl Modules {
    fn new(sources: BTreeMap<Path, String>) -> Self {
        let mut modules = Self {
            sources,
            exports: BTreeMap::new(),
        };
        let mut exports = BTreeMap::new();
        for (module, source) in &modules.sources {
            for import in imports(source).iter().filter(|import| import.is_export) {
                let path = modules.absolute(module, &import.path);
                if let (Some(path), Some(name)) = (path, import.path.last()) {
                    exports.insert((module.clone(), name.clone()), modules.module_of(&path));
                }
            }
        }
        modules.exports = exports;
        modules
    }

    /// The modules of a crate, without its tests.
    fn of_crate(name: &str) -> Self {
        let directory = format!("crates/{name}/src");
        let sources = files(&directory, &["rs"]).into_iter().filter_map(|file| {
            let path = file.path.strip_prefix(&directory)?.strip_suffix(".rs")?;
            let mut module: Path = path.split('/').skip(1).map(str::to_owned).collect();
            if module.iter().any(|part| part == "tests" || part == "bin") {
                return None;
            }
            module.retain(|part| part != "lib" && part != "main");
            Some((module, shipped_code(&file.text)))
        });
        Self::new(sources.collect())
    }

    /// The path from the root of the crate; `None` for a path into another crate.
    fn absolute(&self, module: &Path, path: &[String]) -> Option<Path> {
        let supers = path.iter().take_while(|part| *part == "super").count();
        let base = match path.first()?.as_str() {
            "crate" => Vec::new(),
            "self" => module.clone(),
            "super" => module.get(..module.len().checked_sub(supers)?)?.to_vec(),
            child => {
                let mut child_module = module.clone();
                child_module.push(child.to_owned());
                self.sources.contains_key(&child_module).then_some(())?;
                return Some([module, path].concat());
            }
        };
        Some([&base, &path[supers.max(1)..]].concat())
    }

    /// The module that a path leads to or into.
    fn module_of(&self, path: &[String]) -> Path {
        let lengths = (0..=path.len()).rev();
        let mut prefixes = lengths.map(|length| path[..length].to_vec());
        let module = prefixes.find(|prefix| self.sources.contains_key(prefix));
        module.unwrap_or_default()
    }

    /// The module that defines what a path names, wherever it is re-exported.
    fn definition_of(&self, path: &[String]) -> Path {
        let mut module = self.module_of(path);
        if let Some(name) = path.get(module.len()) {
            while let Some(origin) = self.exports.get(&(module.clone(), name.clone()))
                && *origin != module
            {
                module = origin.clone();
            }
        }
        module
    }

    /// What each module imports, apart from what the modules around it define.
    fn edges(&self) -> BTreeMap<Path, BTreeSet<Path>> {
        let edges = self.sources.iter().map(|(module, source)| {
            let imports = imports(source);
            let paths = imports.iter().filter_map(|import| {
                // What the root re-exports is there for others.
                let is_used = !(import.is_export && module.is_empty());
                is_used.then(|| self.absolute(module, &import.path))?
            });
            let targets = paths.map(|path| self.definition_of(&path));
            let targets = targets.filter(|target| !module.starts_with(target));
            (module.clone(), targets.collect())
        });
        edges.collect()
    }

    /// The imports that are part of a cycle, or lead from one cycle to another.
    fn cycles(&self) -> Vec<String> {
        let mut edges = self.edges();
        loop {
            let imported: BTreeSet<Path> = edges.values().flatten().cloned().collect();
            let before = edges.len();
            edges.retain(|module, targets| !targets.is_empty() && imported.contains(module));
            let left: BTreeSet<Path> = edges.keys().cloned().collect();
            for targets in edges.values_mut() {
                targets.retain(|target| left.contains(target));
            }
            if edges.len() == before {
                break;
            }
        }
        let lines = edges.iter().flat_map(|(module, targets)| {
            let from = module.join("::");
            targets
                .iter()
                .map(move |target| format!("{from} imports {}", target.join("::")))
        });
        lines.collect()
    }
}

struct Import {
    path: Path,
    is_export: bool,
}

/// The code of a file without comments, literals and unit tests.
fn shipped_code(text: &str) -> String {
    let code = spans(text).into_iter();
    let code: String = code
        .filter(|span| span.kind == SpanKind::Code)
        .map(|span| span.text)
        .collect();
    let end = code.find("#[cfg(test)]\nmod tests").unwrap_or(code.len());
    code[..end].to_owned()
}

/// All paths that `use` declarations name, and those in the code that begin with `crate` or `super`.
fn imports(code: &str) -> Vec<Import> {
    let mut imports = Vec::new();
    for statement in code.split(';') {
        let start = statement.lines().position(|line| use_tree(line).is_some());
        let lines = statement.lines().take(start.unwrap_or(usize::MAX));
        let before: Vec<&str> = lines.collect();
        imports.extend(paths_in(&before.join("\n")).map(|path| Import {
            path,
            is_export: false,
        }));
        let Some(start) = start else {
            continue;
        };
        let rest: Vec<&str> = statement.lines().skip(start).collect();
        let rest = rest.join(" ");
        if let Some(tree) = use_tree(&rest) {
            let is_export = rest.trim_start().starts_with("pub");
            imports.extend(expand(tree).into_iter().map(|path| {
                Import {
                    path: path
                        .split("::")
                        .map(|part| part.trim().to_owned())
                        .collect(),
                    is_export,
                }
            }));
        }
    }
    imports
}

/// What follows `use` in a line that begins such a declaration.
fn use_tree(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let (visibility, tree) = line.split_once("use ")?;
    let is_visibility = visibility.is_empty()
        || (visibility.starts_with("pub") && visibility.ends_with([' ', ')']));
    is_visibility.then_some(tree)
}

/// Writes out the braces of a `use` declaration.
fn expand(tree: &str) -> Vec<String> {
    let tree = tree.trim();
    let Some((prefix, group)) = tree.split_once('{') else {
        let name = tree.split(" as ").next().unwrap_or_default();
        return vec![name.to_owned()];
    };
    let group = group.trim_end().strip_suffix('}').unwrap_or(group);
    let mut depth = 0_usize;
    let entries = group.split(|c| {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        c == ',' && depth == 0
    });
    let entries = entries.filter(|entry| !entry.trim().is_empty());
    entries
        .flat_map(|entry| expand(&format!("{prefix}{}", entry.trim())))
        .collect()
}

/// The paths in an expression or a type that begin with `crate` or `super`.
fn paths_in(code: &str) -> impl Iterator<Item = Path> {
    let is_in_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let words = code.split(move |c| !is_in_path(c) && c != '$');
    let words = words.filter(|word| word.starts_with("crate::") || word.starts_with("super::"));
    words.map(|word| word.split("::").map(str::to_owned).collect())
}

#[test]
fn no_module_imports_from_one_that_imports_from_it() {
    for name in ["unbraid-core", "unbraid", "unbraid-http", "unbraid-cli"] {
        let modules = Modules::of_crate(name);
        assert!(modules.sources.len() > 10, "{name} has sources");
        let cycles = modules.cycles();
        assert!(cycles.is_empty(), "{name}:\n{}", cycles.join("\n"));
    }
}

#[track_caller]
fn check(sources: &[(&str, &str)], expected: &[&str]) {
    let sources = sources.iter().map(|(module, source)| {
        let parts = module.split("::").filter(|part| !part.is_empty());
        (parts.map(str::to_owned).collect(), shipped_code(source))
    });
    assert_eq!(Modules::new(sources.collect()).cycles(), expected);
}

#[test]
fn cycles_of_modules_are_found() {
    let both = ["a imports b", "b imports a"];
    check(
        &[("a", "use crate::b::B;"), ("b", "use super::a::{A, C};")],
        &both,
    );
    check(
        &[
            ("a", "use crate::b::B;"),
            ("b", "fn f() { crate::a::g(); }"),
        ],
        &both,
    );
    check(
        &[
            ("a", "use crate::b::B;"),
            ("b", "// crate::a\nuse std::fmt;"),
        ],
        &[],
    );
    // Through the root, which re-exports both.
    let root = ("", "pub use a::{A, c::C};\npub use b::B;");
    check(
        &[
            root,
            ("a", "use crate::B;"),
            ("b", "use crate::{\n    A,\n};"),
        ],
        &both,
    );
    // C is defined in a module inside of `a`, which does not import `b`.
    check(
        &[
            root,
            ("a", "use crate::B;"),
            ("a::c", ""),
            ("b", "use crate::C;"),
        ],
        &[],
    );
    // A module and its parent.
    check(&[("a", "use b::B;"), ("a::b", "use super::A;")], &[]);
    check(
        &[
            ("a", "#[cfg(test)]\nmod tests { use crate::b::B; }"),
            ("b", "use crate::a::A;"),
        ],
        &[],
    );
}
