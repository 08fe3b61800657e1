//! The files of the repository, and Rust sources split into code, comments and string literals.

use std::{fs, path::Path};

use unbraid_testkit::fixture::workspace_root;

/// A text file of the repository. Its path is relative to the root, with `/` on every platform.
pub(super) struct File {
    pub(super) path: String,
    pub(super) text: String,
}

/// Every file below `dir` that has one of these extensions, sorted by path.
///
/// Hidden directories and build directories are skipped: the test must also pass in an export without git.
pub(super) fn files(dir: &str, extensions: &[&str]) -> Vec<File> {
    let root = workspace_root();
    let mut pending = vec![root.join(dir)];
    let mut files = Vec::new();
    while let Some(path) = pending.pop() {
        let name = path
            .file_name()
            .map(|name| name.to_string_lossy().into_owned());
        let name = name.unwrap_or_default();
        if path.is_dir() {
            let skipped = name == "target" || (name.starts_with('.') && path != root.join(dir));
            if !skipped {
                let entries = fs::read_dir(&path).expect("a directory can be listed");
                pending.extend(entries.map(|entry| entry.expect("an entry").path()));
            }
        } else if has_extension(&path, extensions) {
            let relative = path.strip_prefix(&root).expect("below the root");
            let parts: Vec<_> = relative.iter().map(|part| part.to_string_lossy()).collect();
            files.push(File {
                path: parts.join("/"),
                text: fs::read_to_string(&path).expect("sources are UTF-8"),
            });
        }
    }
    files.sort_by(|one, other| one.path.cmp(&other.path));
    files
}

fn has_extension(path: &Path, extensions: &[&str]) -> bool {
    path.extension()
        .is_some_and(|extension| extensions.iter().any(|wanted| extension == *wanted))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SpanKind {
    Code,
    Comment,
    Literal,
}

/// A run of Rust source of one kind.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Span<'a> {
    pub(super) kind: SpanKind,
    pub(super) text: &'a str,
    /// The line it begins on, counted from 1.
    pub(super) line: usize,
}

/// Splits Rust source into its code, comments and string literals. Adding up the spans gives the source again.
pub(super) fn spans(source: &str) -> Vec<Span<'_>> {
    let mut spans = Vec::new();
    let (mut start, mut line) = (0, 1);
    let mut push = |end: usize, kind| {
        let text = &source[start..end];
        if !text.is_empty() {
            spans.push(Span { kind, text, line });
        }
        line += text.matches('\n').count();
        start = end;
    };
    let mut offset = 0;
    while let Some(first) = source[offset..].chars().next() {
        if let Some((kind, length)) = special(source, offset) {
            push(offset, SpanKind::Code);
            offset += length;
            push(offset, kind);
        } else {
            offset += char_literal(&source[offset..]).unwrap_or_else(|| first.len_utf8());
        }
    }
    push(source.len(), SpanKind::Code);
    spans
}

/// The kind and length of the comment or string literal that begins at `offset`.
fn special(source: &str, offset: usize) -> Option<(SpanKind, usize)> {
    let rest = &source[offset..];
    if rest.starts_with("//") {
        return Some((SpanKind::Comment, rest.find('\n').unwrap_or(rest.len())));
    }
    if rest.starts_with("/*") {
        return Some((SpanKind::Comment, block_comment(rest)));
    }
    if rest.starts_with('"') {
        return Some((SpanKind::Literal, string(rest)));
    }
    let in_word = source[..offset].ends_with(|c: char| c.is_alphanumeric() || c == '_');
    let raw = rest.strip_prefix('b').unwrap_or(rest).strip_prefix('r')?;
    let hashes = raw.bytes().take_while(|byte| *byte == b'#').count();
    if in_word || !raw[hashes..].starts_with('"') {
        return None;
    }
    let end = format!("\"{}", "#".repeat(hashes));
    let head = rest.len() - raw.len() + hashes + 1;
    let body = rest[head..].find(&end)?;
    Some((SpanKind::Literal, head + body + end.len()))
}

fn block_comment(rest: &str) -> usize {
    let (mut depth, mut length) = (0_usize, 0);
    while length < rest.len() {
        let here = &rest.as_bytes()[length..];
        if here.starts_with(b"/*") {
            depth += 1;
            length += 2;
        } else if here.starts_with(b"*/") {
            depth -= 1;
            length += 2;
            if depth == 0 {
                return length;
            }
        } else {
            length += 1;
        }
    }
    rest.len()
}

fn string(rest: &str) -> usize {
    let mut escaped = false;
    for (offset, byte) in rest.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return offset + 1,
            _ => {}
        }
    }
    rest.len()
}

/// The length of a character literal such as `'"'`, which must not begin a string. A lifetime is none.
fn char_literal(rest: &str) -> Option<usize> {
    let body = rest.strip_prefix('\'')?;
    if body.starts_with('\\') {
        return body[2..].find('\'').map(|end| end + 4);
    }
    let length = body.chars().next()?.len_utf8();
    body[length..].starts_with('\'').then_some(length + 2)
}

#[cfg(test)]
mod tests {
    use super::{SpanKind, spans};

    #[track_caller]
    fn check(source: &str, expected: &[(SpanKind, &str)]) {
        let spans = spans(source);
        let given: Vec<_> = spans.iter().map(|span| (span.kind, span.text)).collect();
        assert_eq!(given, expected);
    }

    #[test]
    fn spans_separate_code_comments_and_literals() {
        use SpanKind::{Code, Comment, Literal};
        check("", &[]);
        check(
            "a(\"b // c\\\"\"); // d \"e\"\nf",
            &[
                (Code, "a("),
                (Literal, "\"b // c\\\"\""),
                (Code, "); "),
                (Comment, "// d \"e\""),
                (Code, "\nf"),
            ],
        );
        check(
            "r#\"x \" y\"# '\"' 'a '\\'' /* z /* */ */",
            &[
                (Literal, "r#\"x \" y\"#"),
                (Code, " '\"' 'a '\\'' "),
                (Comment, "/* z /* */ */"),
            ],
        );
        check("her\"x\"", &[(Code, "her"), (Literal, "\"x\"")]);
    }

    #[test]
    fn spans_know_their_lines() {
        let lines: Vec<_> = spans("a\n// b\n\"c\nd\" e")
            .iter()
            .map(|span| span.line)
            .collect();
        assert_eq!(lines, [1, 2, 2, 3, 4]);
    }
}
