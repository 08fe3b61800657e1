//! The command line: usage errors and help.

use std::fs;

use unbraid_testkit::fixture::workspace_root;

use crate::unbraid;

#[track_caller]
fn check(args: &str, code: i32) {
    let run = unbraid(args, b"");
    assert_eq!(run.code, code, "{args}: {}", run.stderr);
    let (used, unused) = if code == 0 {
        (&run.stdout, &run.stderr)
    } else {
        (&run.stderr, &run.stdout)
    };
    assert!(!used.is_empty() && unused.is_empty(), "{args}");
}

#[test]
fn usage_errors_exit_with_2() {
    check("", 2);
    check("gather", 2);
    check("collect --no-such-option", 2);
    check("collect --expect-choices 0", 2);
    check("collect --expect-choices -1", 2);
    check("collect --expect-choices many", 2);
    check("collect one.sse two.sse", 2);
    check("split one.sse", 2);
    check("demo one.sse", 2);
    check("demo --speed 0", 2);
    check("demo --stay --plain", 2);
    check("replay", 2);
    check("replay x.sse --fault fire", 2);
    check("replay x.sse --times 1", 2);
    check("replay x.sse --cut 0", 2);
    check("replay x.sse --port 65536", 2);
    check("replay x.sse --record-from http://x --fault end", 2);
    check("replay x.sse --after-last never", 2);
    check("collect --text --request x.json", 2);
    check("chat --text --json", 2);
    check("chat --text --plain", 2);
    check("stats one.sse two.sse", 2);
    check("completions csh", 2);
}

#[test]
fn help_and_version_exit_with_0() {
    check("--help", 0);
    check("collect --help", 0);
    check("events --help", 0);
    check("split -h", 0);
    check("watch --help", 0);
    check("chat --help", 0);
    check("demo --help", 0);
    check("replay --help", 0);
    check("stats --help", 0);
    check("generate --help", 0);
    check("completions --help", 0);
    check("help split", 0);
    check("--version", 0);
    assert!(
        unbraid("--version", b"")
            .stdout
            .contains(env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn the_help_has_every_exit_code_of_the_document() {
    let page = fs::read_to_string(workspace_root().join("docs/command-line.md")).unwrap();
    let (_, section) = page.split_once("\n## Exit codes\n").unwrap();
    let table = section.split("\n## ").next().unwrap();
    let rows = table.lines().filter_map(|line| line.strip_prefix("| "));
    let codes = rows.filter_map(|row| row.split(' ').next()?.parse::<i32>().ok());
    let help = unbraid("--help", b"").stdout;
    let (_, listed) = help.split_once("\nExit codes:\n").unwrap();
    let listed = listed.lines().take_while(|line| !line.is_empty());
    let listed = listed.map(|line| line.trim().split(' ').next().unwrap().parse().unwrap());
    assert_eq!(listed.collect::<Vec<i32>>(), codes.collect::<Vec<_>>());
}

#[test]
fn options_are_accepted_before_and_after_the_command() {
    let stream = b"data: {\"choices\":[{\"index\":7,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let before = unbraid("--expect-choices 1 collect -", stream);
    let after = unbraid("collect - --expect-choices=1", stream);
    assert_eq!(before.json()["choices"][0]["index"], 0);
    assert_eq!(before.stdout, after.stdout);
}
