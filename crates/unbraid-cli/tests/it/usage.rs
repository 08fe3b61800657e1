//! The command line itself.

use crate::unbraid;

#[track_caller]
fn check(words: &str, code: i32) {
    let run = unbraid(words, b"");
    assert_eq!(run.code, code, "{words}: {}", run.stderr);
    let (told, silent) = if code == 0 {
        (&run.stdout, &run.stderr)
    } else {
        (&run.stderr, &run.stdout)
    };
    assert!(!told.is_empty() && silent.is_empty(), "{words}");
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
fn options_stand_before_or_behind_the_command() {
    let stream = b"data: {\"choices\":[{\"index\":7,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let before = unbraid("--expect-choices 1 collect -", stream);
    let behind = unbraid("collect - --expect-choices=1", stream);
    assert_eq!(before.json()["choices"][0]["index"], 0);
    assert_eq!(before.stdout, behind.stdout);
}

#[test]
fn shells_can_complete_the_commands() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let run = unbraid(&format!("completions {shell}"), b"");
        assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{shell}");
        for word in ["collect", "chat", "replay", "expect-choices", "fault"] {
            assert!(run.stdout.contains(word), "{shell}: {word}");
        }
    }
}
