//! Every public type, function and method of the published libraries has an example.
//!
//! An example counts for an item if it is in the item's own documentation. An example of a type also counts for the
//! methods that it names, and an example of the crate's or module's documentation for the types and functions that it
//! names.
//! Exempt are trait implementations, trait methods, variants, fields, constants, and everything under `#[doc(hidden)]`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use syn::{Attribute, Expr, ImplItem, Item, Lit, Meta, Type, UseTree, Visibility};
use unbraid_testkit::fixture::workspace_root;

/// The published libraries.
const LIBRARIES: [&str; 4] = ["unbraid-core", "unbraid", "unbraid-http", "unbraid-log"];

/// A module file or an inline module.
struct Module {
    name: String,
    docs: String,
    items: Vec<Item>,
    /// Whether its path is public and not hidden, so that its public items are part of the documentation.
    is_visible: bool,
}

/// A public item, and the documentation whose examples count for it if they name it.
struct Documented {
    path: String,
    name: String,
    docs: String,
    context: String,
}

impl Documented {
    fn has_example(&self) -> bool {
        !examples(&self.docs).is_empty() || names(&examples(&self.context), &self.name)
    }
}

/// The code of the Rust examples in a documentation text.
fn examples(docs: &str) -> String {
    const OTHER: [&str; 5] = ["text", "sh", "json", "toml", "console"];
    let mut code = String::new();
    for (index, block) in docs.split("```").enumerate() {
        let (language, body) = block.split_once('\n').unwrap_or((block, ""));
        if index % 2 == 1 && !OTHER.contains(&language.trim()) {
            code += body;
        }
    }
    code
}

/// Whether code contains this identifier.
fn names(code: &str, identifier: &str) -> bool {
    code.split(|c: char| !(c.is_alphanumeric() || c == '_'))
        .any(|word| word == identifier)
}

fn docs(attributes: &[Attribute]) -> String {
    let mut text = String::new();
    for attribute in attributes {
        if let Meta::NameValue(pair) = &attribute.meta
            && pair.path.is_ident("doc")
            && let Expr::Lit(literal) = &pair.value
            && let Lit::Str(line) = &literal.lit
        {
            text += &line.value();
            text.push('\n');
        }
    }
    text
}

fn has_list(attributes: &[Attribute], name: &str, argument: &str) -> bool {
    attributes.iter().any(|attribute| {
        let Meta::List(list) = &attribute.meta else {
            return false;
        };
        list.path.is_ident(name) && list.tokens.to_string() == argument
    })
}

fn is_hidden(attributes: &[Attribute]) -> bool {
    has_list(attributes, "doc", "hidden") || has_list(attributes, "cfg", "test")
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

/// Parses a file and the modules below it.
fn load(file: &Path, dir: &Path, name: &str, is_visible: bool, modules: &mut Vec<Module>) {
    let source = fs::read_to_string(file).expect("a module has a file");
    let parsed = syn::parse_file(&source).expect("the sources compile");
    add(
        name,
        docs(&parsed.attrs),
        parsed.items,
        is_visible,
        dir,
        modules,
    );
}

fn add(
    name: &str,
    docs_of_module: String,
    items: Vec<Item>,
    is_visible: bool,
    dir: &Path,
    modules: &mut Vec<Module>,
) {
    let mut own = Vec::new();
    for item in items {
        let Item::Mod(module) = item else {
            own.push(item);
            continue;
        };
        if has_list(&module.attrs, "cfg", "test") {
            continue;
        }
        let name = module.ident.to_string();
        let is_visible = is_visible && is_public(&module.vis) && !is_hidden(&module.attrs);
        let below = dir.join(&name);
        match module.content {
            Some((_, items)) => add(
                &name,
                docs(&module.attrs),
                items,
                is_visible,
                &below,
                modules,
            ),
            None => load(&path_of(dir, &name), &below, &name, is_visible, modules),
        }
    }
    modules.push(Module {
        name: name.to_owned(),
        docs: docs_of_module,
        items: own,
        is_visible,
    });
}

fn path_of(dir: &Path, module: &str) -> PathBuf {
    dir.join(format!("{module}.rs"))
}

/// The names that public `use` items of visible modules export; of `module::*` it is every name in `module`.
fn exports(modules: &[Module]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for module in modules.iter().filter(|module| module.is_visible) {
        for item in &module.items {
            if let Item::Use(used) = item
                && is_public(&used.vis)
                && !is_hidden(&used.attrs)
            {
                export(&used.tree, "", modules, &mut names);
            }
        }
    }
    names
}

fn export(tree: &UseTree, parent: &str, modules: &[Module], names: &mut BTreeSet<String>) {
    match tree {
        UseTree::Path(path) => export(&path.tree, &path.ident.to_string(), modules, names),
        UseTree::Name(name) => drop(names.insert(name.ident.to_string())),
        UseTree::Rename(rename) => drop(names.insert(rename.ident.to_string())),
        UseTree::Group(group) => {
            for tree in &group.items {
                export(tree, parent, modules, names);
            }
        }
        UseTree::Glob(_) => {
            let of_parent = modules.iter().filter(|module| module.name == parent);
            let items = of_parent.flat_map(|module| &module.items);
            names.extend(items.filter_map(declaration).map(|item| item.name));
        }
    }
}

struct Declaration<'a> {
    name: String,
    visibility: &'a Visibility,
    attributes: &'a [Attribute],
}

/// A type, trait or free function.
fn declaration(item: &Item) -> Option<Declaration<'_>> {
    let (ident, visibility, attributes) = match item {
        Item::Struct(item) => (&item.ident, &item.vis, &item.attrs),
        Item::Enum(item) => (&item.ident, &item.vis, &item.attrs),
        Item::Trait(item) => (&item.ident, &item.vis, &item.attrs),
        Item::Fn(item) => (&item.sig.ident, &item.vis, &item.attrs),
        _ => return None,
    };
    Some(Declaration {
        name: ident.to_string(),
        visibility,
        attributes,
    })
}

/// The public items of a library whose modules are below `dir`.
fn public_items(dir: &Path) -> Vec<Documented> {
    let mut modules = Vec::new();
    load(&path_of(dir, "lib"), dir, "crate", true, &mut modules);
    let exports = exports(&modules);
    let root_docs = modules
        .last()
        .map_or_else(String::new, |root| root.docs.clone());
    let mut items = Vec::new();
    let mut types = BTreeMap::new();
    for module in &modules {
        for item in module.items.iter().filter_map(declaration) {
            let is_seen = module.is_visible || exports.contains(&item.name);
            if !is_seen || !is_public(item.visibility) || is_hidden(item.attributes) {
                continue;
            }
            let docs = docs(item.attributes);
            types.insert(item.name.clone(), docs.clone());
            items.push(Documented {
                path: item.name.clone(),
                name: item.name,
                docs,
                context: format!("{root_docs}\n{}", module.docs),
            });
        }
    }
    for module in &modules {
        items.extend(methods(&module.items, &types));
    }
    items
}

/// The public methods of these types.
fn methods(items: &[Item], types: &BTreeMap<String, String>) -> Vec<Documented> {
    let mut methods = Vec::new();
    for item in items {
        let Item::Impl(block) = item else { continue };
        let Type::Path(self_type) = &*block.self_ty else {
            continue;
        };
        let Some(segment) = self_type.path.segments.last() else {
            continue;
        };
        let type_name = segment.ident.to_string();
        let Some(type_docs) = types.get(&type_name) else {
            continue;
        };
        if block.trait_.is_some() || is_hidden(&block.attrs) {
            continue;
        }
        for item in &block.items {
            if let ImplItem::Fn(method) = item
                && is_public(&method.vis)
                && !is_hidden(&method.attrs)
            {
                let name = method.sig.ident.to_string();
                methods.push(Documented {
                    path: format!("{type_name}::{name}"),
                    name,
                    docs: docs(&method.attrs),
                    context: type_docs.clone(),
                });
            }
        }
    }
    methods
}

#[test]
fn every_public_item_has_an_example() {
    let mut failures = Vec::new();
    for library in LIBRARIES {
        let dir = workspace_root().join("crates").join(library).join("src");
        let items = public_items(&dir);
        assert!(items.len() > 20, "{library}: {} items", items.len());
        let mut missing: Vec<&str> = items
            .iter()
            .filter(|item| !item.has_example())
            .map(|item| item.path.as_str())
            .collect();
        missing.sort_unstable();
        if !missing.is_empty() {
            failures.push(format!("{library}: {}", missing.join(", ")));
        }
    }
    assert!(
        failures.is_empty(),
        "items without an example in\n{}",
        failures.join("\n")
    );
}

#[cfg(test)]
mod tests {
    use super::{Documented, examples, names, public_items};
    use unbraid_testkit::fixture::workspace_root;

    fn item(docs: &str, context: &str) -> Documented {
        Documented {
            path: "Type::name".to_owned(),
            name: "name".to_owned(),
            docs: docs.to_owned(),
            context: context.to_owned(),
        }
    }

    #[test]
    fn an_example_counts_for_the_item_and_for_what_it_names() {
        assert!(item("Text.\n```\nx();\n```\n", "").has_example());
        assert!(item("Text.\n```no_run\nx();\n```\n", "").has_example());
        assert!(item("Text.", "```\nvalue.name();\n```\n").has_example());
        assert!(!item("Text.", "The method name.\n```\nvalue.rename();\n```\n").has_example());
        assert!(!item("Text.\n```text\nname\n```\n", "").has_example());
        assert!(!item("", "").has_example());
    }

    #[test]
    fn names_are_whole_identifiers() {
        assert!(names("a.feed(b)", "feed"));
        assert!(!names("a.feed_all(b)", "feed"));
        assert_eq!(examples("a\n```\nb\n```\nc\n```json\nd\n```"), "b\n");
    }

    #[test]
    fn reexported_items_are_found_and_hidden_ones_are_not() {
        let items = public_items(&workspace_root().join("crates/unbraid-core/src"));
        let has = |path: &str| items.iter().any(|item| item.path == path);
        assert!(has("Demux") && has("Demux::feed") && has("parse_json"));
        assert!(!has("parsed") && !has("EventFilter"));
    }
}
