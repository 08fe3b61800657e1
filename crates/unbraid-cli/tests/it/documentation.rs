//! The examples of docs/command-line.md show the actual output.
//!
//! With `UNBRAID_BLESS` set, the test replaces the outputs in the document.

use std::{env, fs, process::Command};

use unbraid_testkit::fixture::workspace_root;

use crate::{Run, UNBRAID};

/// The output of a command that runs in the root of the workspace. A temporary directory replaces `answers`.
fn output(args: &str) -> String {
    let dir = tempfile::tempdir().unwrap();
    let answers = dir.path().join("answers").display().to_string();
    let run = Command::new(UNBRAID)
        .args(args.split_whitespace().map(|arg| match arg {
            "answers" => &answers,
            arg => arg,
        }))
        .current_dir(workspace_root())
        .output()
        .unwrap();
    let run = Run::from(run);
    format!("{}{}", run.stdout, run.stderr).replace(&answers, "answers")
}

#[test]
fn examples_in_the_document_show_the_actual_output() {
    let path = workspace_root().join("docs/command-line.md");
    let document = fs::read_to_string(&path).unwrap();
    let mut actual = String::new();
    let mut rest = document.as_str();
    let mut examples = 0;
    while let Some((before, example)) = rest.split_once("```console\n$ unbraid ") {
        let (args, example) = example.split_once('\n').unwrap();
        let (_, after) = example.split_once("```\n").unwrap();
        let printed = output(args);
        let parts = [
            before,
            "```console\n$ unbraid ",
            args,
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
