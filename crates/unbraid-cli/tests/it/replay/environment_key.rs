//! `replay --record-from`: which requests get the key of the environment.

use serde_json::json;

use super::{CHAT, Replay, Response, record::missing, several::recording};
use crate::chat::server::{Reply, Server};

const KEY: &str = "sk-the-key-of-the-environment";

/// The head of the request that the provider received for a request with these headers.
fn head_at_provider(path: &str, headers: &str, base_query: &str) -> String {
    let body = recording("m", "answer");
    let provider = Server::start(move |_, _| Reply::new(200, "text/event-stream", body.as_bytes()));
    let (_dir, files) = missing(&["1.sse"]);
    let options = format!("--record-from {}{base_query}", provider.base_url());
    let replay = Replay::of_files_with(&files, &options, &[("OPENAI_API_KEY", KEY)]);
    let question = json!({ "model": "m", "stream": true }).to_string();
    Response::read(replay.connect_with("POST", path, headers, &question));
    provider.requests()[0].head.to_ascii_lowercase()
}

#[track_caller]
fn check(path: &str, headers: &str, base_query: &str, is_added: bool) {
    let head = head_at_provider(path, headers, base_query);
    let authorization = format!("authorization: bearer {KEY}\r\n");
    assert_eq!(head.contains(&authorization), is_added, "{head}");
    assert_eq!(head.contains(KEY), is_added, "{head}");
}

#[test]
fn only_the_interfaces_of_openai_get_the_key() {
    check(CHAT, "", "", true);
    check("/v1/completions", "", "", true);
    check("/v1/responses", "", "", true);
    for path in [
        "/v1/messages",
        "/v1beta/models/gemini-x:streamGenerateContent",
        "/api/chat",
        "/v2/chat",
        "/model/m/converse-stream",
    ] {
        check(path, "", "", false);
    }
}

#[test]
fn a_request_with_a_key_of_its_own_does_not_get_another_one() {
    check(CHAT, "authorization: Bearer none\r\n", "", false);
    check(CHAT, "x-api-key: own\r\n", "", false);
    check(&format!("{CHAT}?key=own"), "", "", false);
    check(&format!("{CHAT}?api-version=1&API_KEY=own"), "", "", false);
    check(&format!("{CHAT}?api-version=1"), "", "", true);
    check(CHAT, "", "?key=own", false);
    check(CHAT, "", "?api-version=1", true);
}
