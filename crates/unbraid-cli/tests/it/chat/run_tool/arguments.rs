//! Contradictions that are reported before anything is sent.

use super::{Sandbox, answer, turns};

#[test]
fn wrong_arguments_exit_with_2_before_a_request_is_sent() {
    let sandbox = Sandbox::new();
    let server = turns(&[answer("Never.")]);
    let url = server.base_url();
    let now = sandbox.script("now", "echo 12:00");
    let other = sandbox.script("other", "echo 12:00");
    let nowhere = format!("now={}", sandbox.path("nowhere.sh"));
    let no_program = format!("now={}", sandbox.path("tools.json"));
    let cases: [(&[&str], &str); 11] = [
        (
            &["--run-tool", &other],
            "--run-tool other: the request has no tool of this name; it has now, weather, free",
        ),
        (&["--run-tool", &nowhere], "No such file"),
        (&["--run-tool", &no_program], "not executable"),
        (
            &["--run-tool", &now, "--run-tool", &now],
            "several programs",
        ),
        (&["--run-tool", "now"], "expected the name of a tool"),
        (
            &["--run-tool", &now, "-n", "2"],
            "--run-tool continues one choice",
        ),
        (&["--run-tool", &now, "--take", "1"], "--take"),
        (&["--run-tool", &now, "--stay"], "--stay"),
        (&["--run-tool", &now, "--max-turns", "0"], "--max-turns"),
        (&["--yes"], "--run-tool"),
        (&["--max-turns", "3"], "--run-tool"),
    ];
    for (args, message) in cases {
        let yes: &[&str] = if args.contains(&"--yes") || args[0] != "--run-tool" {
            &[]
        } else {
            &["--yes"]
        };
        let run = sandbox.chat(&url, &[args, yes].concat());
        assert_eq!(run.code, 2, "{args:?}: {}", run.stderr);
        assert!(run.stderr.contains(message), "{args:?}: {}", run.stderr);
        assert_eq!(run.stdout, "");
    }
    assert_eq!(server.requests().len(), 0);
}
