//! The examples of docs/command-line.md: what stands there is what is printed.
//!
//! With `UNBRAID_BLESS` set, the outputs in the document are replaced by what is printed now.

use std::{env, fs, process::Command};

use unbraid_testkit::fixture::workspace_root;

use crate::{Run, UNBRAID};

/// What a command prints, run from the root of the workspace; the directory `answers` is another one.
fn output(words: &str) -> String {
    let dir = tempfile::tempdir().unwrap();
    let answers = dir.path().join("answers").display().to_string();
    let run = Command::new(UNBRAID)
        .args(words.split_whitespace().map(|word| match word {
            "answers" => &answers,
            word => word,
        }))
        .current_dir(workspace_root())
        .output()
        .unwrap();
    let run = Run::from(run);
    format!("{}{}", run.stdout, run.stderr).replace(&answers, "answers")
}

#[test]
fn examples_print_what_the_document_says() {
    let path = workspace_root().join("docs/command-line.md");
    let document = fs::read_to_string(&path).unwrap();
    let mut actual = String::new();
    let mut rest = document.as_str();
    let mut examples = 0;
    while let Some((before, example)) = rest.split_once("```console\n$ unbraid ") {
        let (words, example) = example.split_once('\n').unwrap();
        let (_, after) = example.split_once("```\n").unwrap();
        let printed = output(words);
        let parts = [
            before,
            "```console\n$ unbraid ",
            words,
            "\n",
            &printed,
            "```\n",
        ];
        actual.extend(parts);
        rest = after;
        examples += 1;
    }
    actual.push_str(rest);
    assert!(examples >= 4);
    if env::var_os("UNBRAID_BLESS").is_some() {
        fs::write(&path, actual).unwrap();
    } else {
        assert_eq!(actual, document);
    }
}
