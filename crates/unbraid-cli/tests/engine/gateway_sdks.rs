//! `unbraid serve` as OpenAI's own libraries for Python and JavaScript see it, and as `EventSource` does. Their scripts do the
//! same, so one expectation holds for both.

mod upstream;

use std::{
    fs,
    io::{self, Write},
    process::{Command, Stdio},
    sync::OnceLock,
    time::Duration,
};

use serde_json::{Value, json};
use unbraid_testkit::fixture::workspace_root;

use self::upstream::Upstream;
use crate::{
    UNBRAID,
    engine::{self, Server},
    prepared,
};

/// What the clients observed, by the name of the library.
fn observations() -> &'static [(&'static str, Value)] {
    static OBSERVED: OnceLock<Vec<(&str, Value)>> = OnceLock::new();
    OBSERVED.get_or_init(|| {
        let upstream = Upstream::start();
        let clients = [("openai-python", python()), ("openai-node", node())];
        clients
            .into_iter()
            .filter_map(|(name, client)| Some((name, observe(&upstream, client?))))
            .collect()
    })
}

/// Starts a gateway.
fn serve(upstream: &Upstream, options: &str) -> Server {
    let mut gateway = Command::new(UNBRAID);
    gateway
        .args(["serve", "--listen", "127.0.0.1:0", "--upstream"])
        .arg(&upstream.base_url)
        .args(options.split(' '));
    Server::start(&mut gateway)
}

/// Runs a client against gateways of its own. A client that fails or hangs fails the test.
fn observe(upstream: &Upstream, mut client: Command) -> Value {
    let gateway = serve(upstream, "--ping 100ms");
    let hasty = serve(upstream, "--max-connection-age 1s");
    let closed_before = upstream.closed();
    let output = client
        .args([&gateway.base_url, &hasty.base_url])
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    assert!(output.status.success(), "{client:?}: {}", output.status);
    // The client has cancelled the only answer that does not end by itself.
    let deadline = tokio::time::Instant::now() + Duration::from_secs(60);
    while upstream.closed() == closed_before {
        assert!(
            tokio::time::Instant::now() < deadline,
            "the upstream is not closed"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    serde_json::from_slice(&output.stdout).unwrap()
}

fn python() -> Option<Command> {
    let mut command = Command::new(engine::python()?);
    command
        .args(["-W", "ignore"])
        .arg(workspace_root().join("tests/engine/gateway.py"));
    Some(command)
}

fn node() -> Option<Command> {
    let directory = prepared().join("node");
    if !directory.join("installed").is_file() {
        let reason = fs::read_to_string(directory.join("skipped"));
        let reason = reason.unwrap_or_else(|_| "tests/engine/prepare.py has not been run".into());
        // The test harness captures `eprintln!` of passing tests, so this writes to the standard error directly.
        writeln!(io::stderr(), "\nskipped openai-node: {}", reason.trim()).unwrap();
        return None;
    }
    let mut command = Command::new("node");
    command
        .arg(workspace_root().join("tests/engine/gateway.mjs"))
        .current_dir(directory);
    Some(command)
}

/// Compares what each library observed.
#[track_caller]
fn each(what: &str, check: impl Fn(&Value)) {
    for (name, observed) in observations() {
        println!("{name}: {what} {}", observed[what]);
        check(&observed[what]);
    }
}

/// The words of three choices, from one word on.
fn words(from: usize) -> Value {
    let text = |index: usize| -> String {
        (from..upstream::WORDS)
            .map(|word| upstream::word(index, word))
            .collect()
    };
    json!([text(0), text(1), text(2)])
}

#[test]
fn the_combined_stream_and_each_choice_are_ordinary_streams() {
    each("finished", |observed| {
        assert_eq!(observed["created"], words(0));
        assert_eq!(observed["request_id"], "r1");
        assert_eq!(observed["choices"], words(0));
    });
}

#[test]
fn each_choice_is_resumed_after_a_cursor_of_the_combined_view() {
    each("finished", |observed| {
        assert_eq!(observed["resumed"], words(1));
        assert_eq!(observed["resumed_by_query"], words(1));
        assert_eq!(observed["snapshot"], words(0));
        assert_eq!(observed["tail"], json!(["", "", ""]));
    });
}

#[test]
fn a_reader_that_has_everything_gets_an_empty_answer() {
    each("finished", |observed| {
        // The library for Python reads it as a stream, the other one shows the status.
        assert!([0, 204].contains(&observed["after_the_end"].as_i64().unwrap()));
    });
}

#[test]
fn the_message_so_far_is_an_ordinary_completion() {
    each("finished", |observed| {
        for (index, text) in words(0).as_array().unwrap().iter().enumerate() {
            let choice =
                |index: usize| json!({"index": index, "text": text, "finish_reason": "stop"});
            let alone = json!({"choices": [choice(0)], "state": "ended"});
            assert_eq!(observed["so_far"][index], alone);
            assert_eq!(observed["all_so_far"]["choices"][index], choice(index));
        }
    });
}

#[test]
fn pings_disturb_no_library() {
    each("pings", |observed| assert_eq!(*observed, words(0)));
}

#[test]
fn a_choice_is_cancelled_and_the_other_one_continues() {
    each("cancelled", |observed| {
        assert_eq!(
            *observed,
            json!({
                "running": {"state": "running", "finish_reason": null},
                "answer": {"index": 1, "state": "ended", "end": "cancelled", "upstream": "continues"},
                "view_ends": "cancelled",
                "continued": null,
                "end": "cancelled",
                "post_ends": [0, "cancelled"],
            })
        );
    });
}

#[test]
fn a_cut_upstream_is_an_error_in_every_view() {
    each("cut", |observed| {
        let text = upstream::word(1, 0);
        let so_far = json!({"choices": [{"index": 0, "text": text, "finish_reason": null}], "state": "ended"});
        let first: Vec<_> = (0..3).map(|index| upstream::word(index, 0)).collect();
        assert_eq!(observed["created"], json!(first));
        assert_eq!(observed["so_far"], so_far);
        for view in ["post", "combined", "choice"] {
            let code = observed[view].as_str();
            assert!(
                matches!(code, Some("transport" | "interrupted")),
                "{view}: {code:?}"
            );
        }
    });
}

#[test]
fn a_repeated_key_attaches_to_the_first_request() {
    each("repeated", |observed| {
        let expected = json!({"same_id": true, "replayed": "true", "texts": [words(0), words(0)]});
        assert_eq!(*observed, expected);
    });
}

#[test]
fn an_answer_that_is_not_waited_for_is_read_later() {
    each("later", |observed| {
        let words = words(0);
        let choices = &words.as_array().unwrap()[..2];
        let expected = json!({"status": 202, "state": "running", "choices": choices});
        assert_eq!(*observed, expected);
    });
}

#[test]
fn a_live_stream_has_no_id() {
    each("live", |observed| {
        assert_eq!(*observed, json!({"id": null, "texts": words(0)}));
    });
}

#[test]
fn errors_have_the_codes_of_the_gateway_and_of_the_provider() {
    each("unknown", |code| assert_eq!(code, "stream_not_found"));
    each("refused", |code| assert_eq!(code, "overloaded"));
}

#[test]
fn event_source_reconnects_by_a_signed_link_until_it_has_everything() {
    for (_, observed) in observations() {
        let Some(observed) = observed.get("event_source") else {
            continue; // the library for Python
        };
        assert_eq!(
            *observed,
            json!({
                "code": 204,
                "done": "[DONE]",
                "text": words(0)[1],
                "increases": true,
                "reconnected": true,
                "cursors_are_ids": true,
            })
        );
    }
}
