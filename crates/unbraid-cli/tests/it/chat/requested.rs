//! How many choices were requested, and how many came.

use serde_json::json;
use unbraid_testkit::fixture::workspace_root;

use super::{answering, server::Server, stream, whole};
use crate::Run;

/// The text of each choice of the recording that the examples use, by index.
fn haikus() -> (Vec<u8>, Vec<String>) {
    let body = std::fs::read(workspace_root().join("examples/streams/haikus.sse")).unwrap();
    let response = crate::unbraid("collect", &body).json();
    let choices = response["choices"].as_array().unwrap().iter();
    let texts = choices.map(|choice| choice["message"]["content"].as_str().unwrap().to_owned());
    (body, texts.collect())
}

fn texts(run: &Run) -> Vec<String> {
    let response = run.json();
    let choices = response["choices"].as_array().unwrap().iter();
    let text =
        |choice: &serde_json::Value| choice["message"]["content"].as_str().map(str::to_owned);
    choices.filter_map(text).collect()
}

fn warnings(run: &Run) -> Vec<String> {
    let response = run.json();
    let warnings = response["unbraid"]["warnings"].as_array().unwrap().iter();
    let text = |warning: &serde_json::Value| {
        let (code, message) = (&warning["code"], &warning["message"]);
        format!("{}: {}", code.as_str().unwrap(), message.as_str().unwrap())
    };
    warnings.map(text).collect()
}

#[test]
fn choices_are_never_folded_unless_that_is_asked_for() {
    let (body, haikus) = haikus();
    assert_eq!(haikus.len(), 4);
    let server = answering(move || super::Reply::of(200, "text/event-stream", &body));
    for words in [&[][..], &["-n", "1"], &["-n", "4"], &["--fan-out=auto"]] {
        let run = server.chat(&[&["-m", "m", "--json", "Well?"], words].concat());
        assert_eq!((run.code, texts(&run)), (0, haikus.clone()), "{words:?}");
    }
    let words = ["-m", "m", "--json", "--expect-choices", "1", "Well?"];
    let folded = server.chat(&words);
    assert_eq!(texts(&folded).len(), 1);
    let warned = warnings(&folded);
    assert!(
        warned.iter().any(|warning| warning.starts_with("E13: ")),
        "{warned:?}"
    );
}

#[test]
fn choices_are_not_folded_in_a_fan_out_unless_that_is_asked_for() {
    let (body, haikus) = haikus();
    let server = Server::start(move |number, _| match number % 2 {
        0 => super::Reply::of(200, "text/event-stream", &body),
        _ => stream(&whole(0, "alone")),
    });
    let words = ["-m", "m", "--json", "-n", "2", "--fan-out", "Well?"];
    let run = server.chat(&words);
    let came = texts(&run);
    // What was asked for has come whole: one of the four, whichever appeared first.
    assert_eq!((run.code, came.len()), (0, 2), "{}", run.stderr);
    let whole_haikus = came.iter().filter(|text| haikus.contains(text)).count();
    assert_eq!(whole_haikus, 1, "{came:?}");
    assert!(came.contains(&"alone".to_owned()), "{came:?}");
    let warned = warnings(&run);
    assert!(warned.iter().all(|warning| warning.starts_with("E11: ")));
    assert!(!warned.is_empty());

    let shown = server.chat(&["-m", "m", "-n", "2", "--fan-out", "Well?"]);
    assert!(
        shown.stdout.contains("was refused (E11)"),
        "{}",
        shown.stdout
    );

    let counted: String = (1..=6)
        .map(|token| super::chunk(&json!({ "index": token, "delta": { "content": "a" } })))
        .collect();
    let counted = counted + &whole(7, "!") + "data: [DONE]\n\n";
    let counting = answering(move || stream(&counted));
    let run = counting.chat(&words);
    assert_eq!(run.code, 3, "{}", run.stderr);
    assert!(
        warnings(&run)
            .iter()
            .any(|warning| warning.starts_with("E12: ")),
        "{:?}",
        warnings(&run)
    );
    let run = counting.chat(&[&words[..], &["--expect-choices", "1"]].concat());
    assert_eq!((run.code, texts(&run)), (0, vec!["aaaaaa!".to_owned(); 2]));
}

/// A server that gives one choice, whatever is asked for.
fn ignoring_n() -> Server {
    answering(|| stream(&(whole(0, "Seven.") + "data: [DONE]\n\n")))
}

#[test]
fn e30_fewer_choices_than_requested_are_code_3() {
    let server = ignoring_n();
    for words in [&["-n", "5"][..], &["--expect-choices", "5"]] {
        let run = server.chat(&[words, &["-m", "m", "Well?"]].concat());
        assert_eq!(run.code, 3, "{words:?}");
        assert_eq!(run.stderr, "unbraid: answer: E30: expected 5, got 1\n");
        let warned = "warning: event 1: expected 5 choices, got 1 (E30)\n";
        assert!(run.stdout.contains("[0] Seven.\n"), "{}", run.stdout);
        assert!(run.stdout.contains(warned), "{}", run.stdout);
        let run = server.chat(&[words, &["-m", "m", "--json", "Well?"]].concat());
        assert_eq!(run.code, 3, "{words:?}");
        assert_eq!(warnings(&run), ["E30: expected 5 choices, got 1"]);
        assert_eq!(run.json()["unbraid"]["end"], "finished");
    }
    let prompts = json!({ "model": "m", "prompt": ["a", "b"], "n": 2 }).to_string();
    let url = server.base_url();
    let words = ["--base-url", &url, "--request", "-"];
    let run = super::chat(&words, &[], &prompts);
    assert_eq!(run.code, 3);
    assert_eq!(run.stderr, "unbraid: answer: E30: expected 4, got 1\n");
}

#[test]
fn e30_only_chat_exits_with_3() {
    let body = whole(0, "Seven.") + "data: [DONE]\n\n";
    for command in ["collect", "events", "watch --plain"] {
        let run = crate::unbraid(&format!("{command} --expect-choices 5"), body.as_bytes());
        assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{command}");
        assert!(run.stdout.contains("E30"), "{command}: {}", run.stdout);
    }
}

#[test]
fn e30_is_not_reported_if_enough_have_won_or_further_requests_made_up_for_it() {
    let server = ignoring_n();
    let words = ["-n", "5", "--take", "1", "-m", "m", "Well?"];
    let run = server.chat(&words);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    for fan_out in ["--fan-out", "--fan-out=auto"] {
        let run = server.chat(&["-n", "3", fan_out, "-m", "m", "--json", "Well?"]);
        assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{fan_out}");
        assert_eq!(texts(&run).len(), 3, "{fan_out}");
        assert_eq!(warnings(&run), Vec::<String>::new(), "{fan_out}");
    }
}
