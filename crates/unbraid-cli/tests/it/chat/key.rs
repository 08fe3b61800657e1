//! The key is printed nowhere, though a server repeats it in the error of a successful answer.

use serde_json::json;

use super::{answering, chat, chunk, server::Reply};

const KEY: &str = "sk-proj/never+seen=1234567890";

#[test]
fn the_key_is_in_no_error_of_a_stream() {
    let begun = chunk(&json!({ "index": 0, "delta": { "content": "I" } }));
    let error =
        json!({ "error": { "message": format!("wrong key {KEY}!"), "type": KEY, "code": KEY } });
    let escaped = error.to_string().replace('/', "\\/");
    let entry = json!({ "index": 0, "delta": {}, "error": error["error"] });
    for body in [
        format!("{begun}data: {error}\n\n"),
        format!("{begun}data: {escaped}\n\n"),
        format!("{begun}event: error\ndata: wrong key {KEY}!\n\n"),
        chunk(&entry) + "data: [DONE]\n\n",
        error.to_string(),
        json!({ "message": format!("wrong key {KEY}!") }).to_string(),
    ] {
        let reply = body.clone();
        let server = answering(move || Reply::of(200, "text/event-stream", reply.as_bytes()));
        let url = server.base_url();
        for further in [
            &[][..],
            &["--json"],
            &["--events"],
            &["-n", "2", "--fan-out"],
            &["-n", "2", "--fan-out", "--json"],
            &["-n", "2", "--fan-out", "--events"],
            &["-n", "2", "--fan-out=auto", "--json"],
        ] {
            let words = ["--base-url", &url, "-m", "m", "--api-key", KEY, "Well?"];
            let run = chat(&[&words, further].concat(), &[], "");
            let printed = run.stdout.clone() + &run.stderr;
            assert!(!printed.contains("never"), "{further:?}: {printed}");
            assert_ne!(run.code, 0, "{further:?}: {printed}");
        }
        let words = ["--base-url", &url, "-m", "m", "Well?"];
        let run = chat(&words, &[("OPENAI_API_KEY", KEY)], "");
        assert!(!run.stderr.contains("never"), "{}", run.stderr);
    }
    let error = format!("{begun}data: {error}\n\n");
    let server = answering(move || super::stream(&error));
    let words = [
        "--base-url",
        &server.base_url(),
        "-m",
        "m",
        "--api-key",
        KEY,
        "Well?",
    ];
    let run = chat(&words, &[], "");
    let said = "unbraid: the server reported: wrong key [key]!\n";
    assert!(run.stderr.contains(said), "{}", run.stderr);
}
