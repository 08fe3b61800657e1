//! The number of requested choices, and the number of received ones.

use serde_json::json;
use unbraid_testkit::fixture::workspace_root;

use super::{complete, replying, server::Server, stream};
use crate::Run;

/// The recording of the examples, and the text of each of its choices by index.
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
fn choices_are_folded_only_with_the_option() {
    let (body, haikus) = haikus();
    assert_eq!(haikus.len(), 4);
    let server = replying(move || super::Reply::new(200, "text/event-stream", &body));
    for args in [&[][..], &["-n", "1"], &["-n", "4"], &["--fan-out=auto"]] {
        let run = server.chat(&[&["-m", "m", "--json", "Well?"], args].concat());
        assert_eq!((run.code, texts(&run)), (0, haikus.clone()), "{args:?}");
    }
    let args = ["-m", "m", "--json", "--expect-choices", "1", "Well?"];
    let folded = server.chat(&args);
    assert_eq!(texts(&folded).len(), 1);
    let warned_texts = warnings(&folded);
    assert!(
        warned_texts
            .iter()
            .any(|warning| warning.starts_with("E13: ")),
        "{warned_texts:?}"
    );
}

#[test]
fn choices_of_a_fan_out_are_folded_only_with_the_option() {
    let (body, haikus) = haikus();
    let server = Server::start(move |number, _| match number % 2 {
        0 => super::Reply::new(200, "text/event-stream", &body),
        _ => stream(&complete(0, "alone")),
    });
    let args = ["-m", "m", "--json", "-n", "2", "--fan-out", "Well?"];
    let run = server.chat(&args);
    let received = texts(&run);
    // One of the four choices is shown completely, whichever appeared first.
    assert_eq!((run.code, received.len()), (0, 2), "{}", run.stderr);
    let complete_haikus = received.iter().filter(|text| haikus.contains(text)).count();
    assert_eq!(complete_haikus, 1, "{received:?}");
    assert!(received.contains(&"alone".to_owned()), "{received:?}");
    let warned_texts = warnings(&run);
    assert!(
        warned_texts
            .iter()
            .all(|warning| warning.starts_with("E11: "))
    );
    assert!(!warned_texts.is_empty());

    let shown = server.chat(&["-m", "m", "-n", "2", "--fan-out", "Well?"]);
    assert!(
        shown.stdout.contains("was refused (E11)"),
        "{}",
        shown.stdout
    );

    let counted: String = (1..=6)
        .map(|token| super::chunk(&json!({ "index": token, "delta": { "content": "a" } })))
        .collect();
    let counted = counted + &complete(7, "!") + "data: [DONE]\n\n";
    let counting = replying(move || stream(&counted));
    let run = counting.chat(&args);
    assert_eq!(run.code, 3, "{}", run.stderr);
    assert!(
        warnings(&run)
            .iter()
            .any(|warning| warning.starts_with("E12: ")),
        "{:?}",
        warnings(&run)
    );
    let run = counting.chat(&[&args[..], &["--expect-choices", "1"]].concat());
    assert_eq!((run.code, texts(&run)), (0, vec!["aaaaaa!".to_owned(); 2]));
}

/// A server that always returns one choice.
fn ignoring_n() -> Server {
    replying(|| stream(&(complete(0, "Seven.") + "data: [DONE]\n\n")))
}

#[test]
fn e30_fewer_choices_than_requested_are_code_3() {
    let server = ignoring_n();
    for args in [&["-n", "5"][..], &["--expect-choices", "5"]] {
        let run = server.chat(&[args, &["-m", "m", "Well?"]].concat());
        assert_eq!(run.code, 3, "{args:?}");
        assert_eq!(
            run.stderr,
            "unbraid: answer: expected 5 choices, got 1 (E30)\n"
        );
        let warning = "warning: event 1: expected 5 choices, got 1 (E30)\n";
        assert!(run.stdout.contains("[0] Seven.\n"), "{}", run.stdout);
        assert!(run.stdout.contains(warning), "{}", run.stdout);
        let run = server.chat(&[args, &["-m", "m", "--json", "Well?"]].concat());
        assert_eq!(run.code, 3, "{args:?}");
        assert_eq!(warnings(&run), ["E30: expected 5 choices, got 1"]);
        assert_eq!(run.json()["unbraid"]["end"], "finished");
    }
    let prompts = json!({ "model": "m", "prompt": ["a", "b"], "n": 2 }).to_string();
    let url = server.base_url();
    let args = ["--base-url", &url, "--request", "-"];
    let run = super::chat(&args, &[], &prompts);
    assert_eq!(run.code, 3);
    assert_eq!(
        run.stderr,
        "unbraid: answer: expected 4 choices, got 1 (E30)\n"
    );
}

#[test]
fn e30_only_chat_exits_with_3() {
    let body = complete(0, "Seven.") + "data: [DONE]\n\n";
    for command in ["collect", "events", "watch --plain"] {
        let run = crate::unbraid(&format!("{command} --expect-choices 5"), body.as_bytes());
        assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{command}");
        assert!(run.stdout.contains("E30"), "{command}: {}", run.stdout);
    }
}

#[test]
fn e30_is_not_reported_with_enough_taken_choices_or_further_requests() {
    let server = ignoring_n();
    let args = ["-n", "5", "--take", "1", "-m", "m", "Well?"];
    let run = server.chat(&args);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    for fan_out in ["--fan-out", "--fan-out=auto"] {
        let run = server.chat(&["-n", "3", fan_out, "-m", "m", "--json", "Well?"]);
        assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{fan_out}");
        assert_eq!(texts(&run).len(), 3, "{fan_out}");
        assert_eq!(warnings(&run), Vec::<String>::new(), "{fan_out}");
    }
}
