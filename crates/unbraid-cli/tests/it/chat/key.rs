//! The key is never printed, even if a server repeats it in an error.

use serde_json::json;

use super::{chat, chunk, replying, server::Reply};

const KEY: &str = "sk-proj/never+seen=1234567890";

#[test]
fn the_key_is_redacted_in_every_error_of_a_stream() {
    let first_chunk = chunk(&json!({ "index": 0, "delta": { "content": "I" } }));
    let error =
        json!({ "error": { "message": format!("wrong key {KEY}!"), "type": KEY, "code": KEY } });
    let escaped = error.to_string().replace('/', "\\/");
    let entry = json!({ "index": 0, "delta": {}, "error": error["error"] });
    for body in [
        format!("{first_chunk}data: {error}\n\n"),
        format!("{first_chunk}data: {escaped}\n\n"),
        format!("{first_chunk}event: error\ndata: wrong key {KEY}!\n\n"),
        chunk(&entry) + "data: [DONE]\n\n",
        error.to_string(),
        json!({ "message": format!("wrong key {KEY}!") }).to_string(),
    ] {
        let reply = body.clone();
        let server = replying(move || Reply::new(200, "text/event-stream", reply.as_bytes()));
        let url = server.base_url();
        for options in [
            &[][..],
            &["--json"],
            &["--events"],
            &["-n", "2", "--fan-out"],
            &["-n", "2", "--fan-out", "--json"],
            &["-n", "2", "--fan-out", "--events"],
            &["-n", "2", "--fan-out=auto", "--json"],
        ] {
            let args = ["--base-url", &url, "-m", "m", "--api-key", KEY, "Well?"];
            let run = chat(&[&args, options].concat(), &[], "");
            let printed = run.stdout.clone() + &run.stderr;
            assert!(!printed.contains("never"), "{options:?}: {printed}");
            assert_ne!(run.code, 0, "{options:?}: {printed}");
        }
        let args = ["--base-url", &url, "-m", "m", "Well?"];
        let run = chat(&args, &[("OPENAI_API_KEY", KEY)], "");
        assert!(!run.stderr.contains("never"), "{}", run.stderr);
    }
    let error = format!("{first_chunk}data: {error}\n\n");
    let server = replying(move || super::stream(&error));
    let args = [
        "--base-url",
        &server.base_url(),
        "-m",
        "m",
        "--api-key",
        KEY,
        "Well?",
    ];
    let run = chat(&args, &[], "");
    let message = "unbraid: the server reported: wrong key [key]!\n";
    assert!(run.stderr.contains(message), "{}", run.stderr);
}
