//! Names and prose use the field's standard terms: the words listed here stand for no concept of the code.
//!
//! Every `.rs` and `.md` file is split into words: identifiers at `_` and at a change of case, comments, strings and
//! pages at spaces and punctuation. A rule rejects a word or a sequence of words.

mod lists;

use super::source::{File, SpanKind, files, spans};
use lists::{ALLOWED, IN_IDENTIFIERS, PHRASES, STANDARD_TERMS, WORDS};

/// A word in lower case.
#[derive(Debug)]
struct Word {
    text: String,
    line: usize,
    is_identifier: bool,
}

/// Appends the words of a text. If it is not code, an identifier is recognized by its backticks, its `_` or its
/// change of case.
fn split(text: &str, first_line: usize, is_code: bool, words: &mut Vec<Word>) {
    let mut line = first_line;
    let mut token = String::new();
    // A fence of three backticks quotes no identifier, and a paragraph ends what is quoted.
    let mut quoted = false;
    let mut previous = ' ';
    let text = text.replace("```", "   ");
    for c in text.chars().chain(['\n']) {
        if c.is_alphanumeric() || c == '_' {
            token.push(c);
        } else {
            push_token(&std::mem::take(&mut token), line, is_code || quoted, words);
            quoted ^= c == '`';
            quoted &= !(c == '\n' && previous == '\n');
            line += usize::from(c == '\n');
        }
        previous = c;
    }
}

fn push_token(token: &str, line: usize, is_code: bool, words: &mut Vec<Word>) {
    let parts: Vec<String> = token.split('_').flat_map(by_case).collect();
    let is_identifier = is_code || parts.len() > 1;
    words.extend(parts.into_iter().map(|text| Word {
        text,
        line,
        is_identifier,
    }));
}

/// The words of `CamelCase`, and of `HTTPServer`, in lower case.
fn by_case(token: &str) -> Vec<String> {
    let chars: Vec<char> = token.chars().collect();
    let mut words: Vec<String> = Vec::new();
    for (at, c) in chars.iter().enumerate() {
        let after_lower = at > 0 && !chars[at - 1].is_uppercase();
        let before_lower = chars.get(at + 1).is_some_and(|next| next.is_lowercase());
        let begins = c.is_uppercase() && (after_lower || before_lower);
        if begins || words.is_empty() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut() {
            word.extend(c.to_lowercase());
        }
    }
    words
}

fn words(file: &File) -> Vec<Word> {
    let mut words = Vec::new();
    if file.path.ends_with(".rs") {
        for span in spans(&file.text) {
            split(
                span.text,
                span.line,
                span.kind == SpanKind::Code,
                &mut words,
            );
        }
    } else {
        split(&file.text, 1, false, &mut words);
    }
    words
}

/// Whether `phrase` covers the word at `index`.
fn covers(words: &[Word], index: usize, phrase: &str) -> bool {
    let length = phrase.split(' ').count();
    (index.saturating_sub(length - 1)..=index).any(|start| begins(words, start, phrase))
}

fn begins(words: &[Word], start: usize, phrase: &str) -> bool {
    let mut rest = words[start..].iter();
    phrase
        .split(' ')
        .all(|part| rest.next().is_some_and(|word| word.text == part))
}

/// `that is no JSON` for `that is not JSON`; `there is no choice` and `is no longer` are fine.
fn is_no(words: &[Word], start: usize) -> bool {
    let [before, is, no, after, ..] = &words[start.saturating_sub(1)..] else {
        return false;
    };
    let is_one_line = is.line == no.line && before.line == is.line;
    is_one_line
        && is.text == "is"
        && no.text == "no"
        && !matches!(before.text.as_str(), "there" | "where" | "if")
        && !matches!(
            after.text.as_str(),
            "longer" | "more" | "less" | "different" | "need"
        )
}

/// The rejected words at `index`, if a rule applies to them.
fn rejected(words: &[Word], index: usize) -> Option<&'static str> {
    let word = &words[index];
    if let Some(phrase) = PHRASES.iter().find(|phrase| begins(words, index, phrase)) {
        let is_term = STANDARD_TERMS
            .iter()
            .any(|term| term.starts_with(phrase) && begins(words, index, term));
        return (!is_term).then_some(phrase);
    }
    if index > 0 && is_no(words, index) {
        return Some("is no ..");
    }
    let listed = WORDS.iter().find(|listed| word.text == **listed);
    let in_identifier = || {
        let mut listed = IN_IDENTIFIERS.iter().filter(|_| word.is_identifier);
        listed.find(|listed| begins(words, index, listed))
    };
    let is_term = || STANDARD_TERMS.iter().any(|term| covers(words, index, term));
    listed
        .or_else(in_identifier)
        .copied()
        .filter(|_| !is_term())
}

fn problems(file: &File) -> Vec<String> {
    let words = words(file);
    let lines: Vec<&str> = file.text.lines().collect();
    let mut problems = Vec::new();
    for (index, word) in words.iter().enumerate() {
        let Some(rejected) = rejected(&words, index) else {
            continue;
        };
        let line = lines.get(word.line - 1).copied().unwrap_or_default();
        let is_allowed = ALLOWED
            .iter()
            .any(|allowed| allowed.allows(&file.path, line));
        if !is_allowed {
            let (path, number) = (&file.path, word.line);
            problems.push(format!(
                "{path}:{number}: \"{rejected}\" in: {}",
                line.trim()
            ));
        }
    }
    problems
}

#[test]
fn names_and_prose_use_standard_terms() {
    let problems: Vec<String> = files("", &["md", "rs"]).iter().flat_map(problems).collect();
    assert!(
        problems.is_empty(),
        "{} words or phrases have a standard term (CONTRIBUTING.md, Names)\n{}",
        problems.len(),
        problems.join("\n")
    );
}

#[cfg(test)]
mod tests {
    use super::{File, by_case, problems};

    fn count(path: &str, text: &str) -> usize {
        problems(&File {
            path: path.to_owned(),
            text: text.to_owned(),
        })
        .len()
    }

    #[track_caller]
    fn rejects(text: &str) {
        assert!(count("a.rs", text) > 0, "{text}");
    }

    #[track_caller]
    fn accepts(text: &str) {
        assert_eq!(count("a.rs", text), 0, "{text}");
    }

    #[test]
    fn identifiers_are_split_at_underscores_and_case() {
        assert_eq!(by_case("tellOwner"), ["tell", "owner"]);
        assert_eq!(by_case("SSEReader2"), ["sse", "reader2"]);
        assert_eq!(by_case("WORD"), ["word"]);
        assert_eq!(by_case(""), Vec::<String>::new());
    }

    #[test]
    fn words_are_rejected_in_names_comments_and_strings() {
        rejects("fn tell_owner() {}");
        rejects("struct ToldOnce;");
        rejects("// The choice tells its end.");
        rejects("let message = \"a spoilt chunk\";");
        rejects("/// See `Voice::Content`.");
        accepts("fn intelligence() {} // newsletter, wishbone, unsettling");
        assert_eq!(count("a.md", "The reader tells\nthe choice its news."), 2);
    }

    #[test]
    fn ambiguous_words_are_rejected_as_names_only() {
        rejects("enum Way { Fast }");
        rejects("fn look(&self) {}");
        rejects("let plain = true;");
        rejects("// Sets `plain`.");
        rejects("fn stand_in() {}");
        accepts("// There are two ways to look at a plain loop. They stand in the table.");
        accepts("fn look_up() {} fn plain_text() {} struct OneWay; fn always() {}");
        accepts("//! ```text\n//! a plain look\n//! ```");
        accepts("const KIND: &str = \"text/plain\"; // shutdown, a tendency, it tends to grow");
    }

    #[test]
    fn phrases_are_rejected_across_lines() {
        rejects("// The fast way is taken.");
        rejects("// Applied by a\n// look at the log.");
        rejects("// A waker for who waits.");
        rejects("// A line that is no JSON.");
        rejects("fn who_is_woken_and_does_not_poll_blocks_nobody() {}");
        accepts("// There is no choice, and it is no longer open.");
        accepts("// The runtime shuts down. They look up the way to it.");
    }

    #[test]
    fn a_problem_says_where() {
        let file = File {
            path: "a.rs".to_owned(),
            text: "fn f() {}\n\nfn told() {}\n".to_owned(),
        };
        assert_eq!(problems(&file), ["a.rs:3: \"told\" in: fn told() {}"]);
    }
}
