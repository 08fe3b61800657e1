//! Every relative link of the Markdown files leads to a file, and every anchor to a heading.

use std::{collections::BTreeSet, fs, path::Path};

use unbraid_testkit::fixture::workspace_root;

use super::source::files;

/// The text without fenced code blocks and inline code, which hold no links.
fn without_code(markdown: &str) -> String {
    let mut fenced = false;
    let mut prose = String::new();
    for line in markdown.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            let parts = line.split('`').enumerate();
            prose.extend(
                parts
                    .filter(|(part, _)| part % 2 == 0)
                    .map(|(_, text)| text),
            );
        }
        prose.push('\n');
    }
    prose
}

/// The targets of `[text](target)`, `[label]: target`, `src="target"` and `href="target"`.
fn targets(markdown: &str) -> Vec<String> {
    let prose = without_code(markdown);
    let mut targets = Vec::new();
    for (marker, end) in [("](", ')'), ("src=\"", '"'), ("href=\"", '"')] {
        for rest in prose.split(marker).skip(1) {
            let target = rest.split([end, ' ', '\n']).next().unwrap_or_default();
            targets.push(target.to_owned());
        }
    }
    let definitions = prose.lines().filter(|line| line.starts_with('['));
    let definitions = definitions.filter_map(|line| line.split_once("]: "));
    targets.extend(definitions.map(|(_, target)| target.trim().to_owned()));
    targets
}

/// The anchors that GitHub gives the headings of a page.
fn anchors(markdown: &str) -> BTreeSet<String> {
    let mut fenced = false;
    let mut anchors = BTreeSet::new();
    for line in markdown.lines() {
        if line.starts_with("```") {
            fenced = !fenced;
        }
        let text = line.trim_start_matches('#');
        if fenced || text.len() == line.len() || !text.starts_with(' ') {
            continue;
        }
        let slug: String = visible(text.trim())
            .to_lowercase()
            .chars()
            .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
            .map(|c| if c == ' ' { '-' } else { c })
            .collect();
        let mut anchor = slug.clone();
        let mut number = 0;
        while !anchors.insert(anchor) {
            number += 1;
            anchor = format!("{slug}-{number}");
        }
    }
    anchors
}

/// A heading as it is displayed: of `[text](target)` only the text.
fn visible(heading: &str) -> String {
    let mut parts = heading.split("](");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text += part.split_once(')').map_or("", |(_, rest)| rest);
    }
    text
}

/// Why a link of the page at `path` leads nowhere.
fn problem(path: &Path, markdown: &str, target: &str) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") || target.is_empty() {
        return None; // only what the repository itself holds can be checked without a network
    }
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    let linked = path.parent().unwrap_or(path).join(file);
    if !file.is_empty() && !linked.exists() {
        return Some("no such file".to_owned());
    }
    let is_markdown = file.is_empty() || file.ends_with(".md");
    if anchor.is_empty() || !is_markdown {
        return None;
    }
    let found = if file.is_empty() {
        anchors(markdown)
    } else {
        anchors(&fs::read_to_string(&linked).unwrap_or_default())
    };
    (!found.contains(anchor)).then(|| format!("no heading gives the anchor #{anchor}"))
}

#[test]
fn every_link_of_a_page_leads_somewhere() {
    let mut problems = Vec::new();
    for file in files("", &["md"]) {
        let path = workspace_root().join(&file.path);
        for target in targets(&file.text) {
            if let Some(problem) = problem(&path, &file.text, &target) {
                problems.push(format!("{}: ({target}): {problem}", file.path));
            }
        }
    }
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

#[test]
fn targets_are_found_outside_of_code() {
    let page = "[a](b.md) ![c](d.svg \"title\")\n`[x](y)`\n```\n[x](y)\n```\n[e]: f.md#g\nAt [F]: \"g\".\n<img src=\"h.svg\">";
    assert_eq!(targets(page), ["b.md", "d.svg", "h.svg", "f.md#g"]);
}

#[test]
fn anchors_follow_githubs_rule() {
    let page = "# One `two`: three_four\n## A, B & C\n## Same\n### Same\n```\n# code\n```\n## [Link](x.md) x\n#hash";
    let expected = ["one-two-three_four", "a-b--c", "same", "same-1", "link-x"];
    let expected: BTreeSet<_> = expected.map(str::to_owned).into();
    assert_eq!(anchors(page), expected);
}

#[test]
fn a_link_needs_a_file_and_a_heading() {
    let root = workspace_root().join("README.md");
    let check = |target: &str| problem(&root, "# Here", target).is_none();
    assert!(check("CONTRIBUTING.md"));
    assert!(check("#here"));
    assert!(check("https://example.com/missing"));
    assert!(check("CONTRIBUTING.md#build-and-test"));
    assert!(!check("#there"));
    assert!(!check("missing.md"));
    assert!(!check("CONTRIBUTING.md#missing"));
}
