//! Several answers, and none, from a provider without `n`.

use super::{chat, replying, server::Reply};

#[test]
fn several_answers_of_a_provider_without_n_cannot_be_recorded() {
    let server = replying(|| Reply::new(500, "text/plain", b""));
    let url = server.base_url();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("answer.sse");
    let record = ["--record", file.to_str().unwrap()];
    let variables = [("ANTHROPIC_BASE_URL", url.as_str())];
    let of_request = r#"{"model":"a","messages":[],"n":2}"#;
    for (options, stdin) in [
        (
            &["--provider", "anthropic", "-m", "a", "-n", "2", "Well?"][..],
            "",
        ),
        (&["--to", "anthropic:a", "-n", "2", "Well?"], ""),
        (&["--provider", "anthropic", "--request", "-"], of_request),
    ] {
        let run = chat(&[&record[..], options].concat(), &variables, stdin);
        assert_eq!(run.code, 2, "{options:?}: {}", run.stderr);
        let message =
            "--record writes one body, and anthropic needs a request for each of the 2 answers";
        assert!(run.stderr.contains(message), "{options:?}: {}", run.stderr);
        assert!(!file.exists(), "{options:?}");
    }
    assert!(server.requests().is_empty());
}

#[test]
fn a_request_for_no_answer_is_refused_where_n_is_not_sent() {
    let server = replying(|| Reply::new(500, "text/plain", b""));
    let url = server.base_url();
    let variables = [
        ("ANTHROPIC_BASE_URL", url.as_str()),
        ("OPENAI_BASE_URL", url.as_str()),
    ];
    let request = r#"{"model":"a","messages":[{"role":"user","content":"Well?"}],"n":0}"#;
    for options in [
        &["--provider", "anthropic"][..],
        &["--to", "anthropic:a"],
        &["--to", "openai:a", "--to", "anthropic:a"],
        &["--fan-out"],
        &["--fan-out=auto"],
    ] {
        let run = chat(
            &[options, &["--request", "-"]].concat(),
            &variables,
            request,
        );
        assert_eq!(run.code, 2, "{options:?}: {}", run.stderr);
        let message = "the request asks for 0 answers";
        assert!(run.stderr.contains(message), "{options:?}: {}", run.stderr);
    }
    assert!(server.requests().is_empty());
}
