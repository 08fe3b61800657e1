//! Several answers: `--fan-out`, and `--take`.

use std::time::Duration;

use serde_json::json;

use super::{
    chunk, complete, replying,
    server::{Reply, Server},
    stream,
};

#[test]
fn fan_out_sends_a_request_without_n_for_each_choice() {
    let server = Server::start(|number, _| stream(&complete(0, &format!("answer {number}"))));
    let run = server.chat(&["-n", "3", "--fan-out", "--json", "-m", "m", "Well?"]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    assert_eq!(run.json()["choices"].as_array().unwrap().len(), 3);
    assert_eq!(server.requests().len(), 3);
    assert!(
        server
            .requests()
            .iter()
            .all(|request| request.body.get("n").is_none())
    );
    let events = server.chat(&[
        "-n",
        "3",
        "--fan-out=always",
        "--events",
        "-m",
        "m",
        "Well?",
    ]);
    let done_events = events
        .lines()
        .into_iter()
        .filter(|line| line["type"] == "content.done");
    assert_eq!(
        done_events
            .filter(|line| line["content"].as_str().unwrap().starts_with("answer "))
            .count(),
        3
    );
    for (count, name) in [(7, "native"), (8, "never")] {
        let fan_out = format!("--fan-out={name}");
        let run = server.chat(&["-n", "3", &fan_out, "-m", "m", "Well?"]);
        assert_eq!((run.code, server.requests().len()), (3, count), "{name}");
    }
}

#[test]
fn fan_out_auto_tries_n_first() {
    let server = Server::start(|_, request| match request.body.get("n") {
        None => stream(&complete(0, "alone")),
        Some(_) => {
            let error = json!({ "error": { "message": "n must be 1", "param": "n" } });
            Reply::new(400, "application/json", error.to_string().as_bytes())
        }
    });
    let run = server.chat(&["-n", "2", "--fan-out=auto", "-m", "m", "Well?"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stdout.contains("[1] alone\n"), "{}", run.stdout);
    assert_eq!(server.requests().len(), 3);
    let native = server.chat(&["-n", "2", "-m", "m", "Well?"]);
    assert_eq!(native.code, 1);
    assert!(
        native.stderr.contains("n must be 1; --fan-out requests"),
        "{}",
        native.stderr
    );
}

#[test]
fn fan_out_measures_times_from_the_first_request() {
    let server = Server::start(|number, _| {
        if number == 0 {
            return stream(": wait\n\n").then(Duration::from_millis(500), &complete(0, "alone"));
        }
        stream(&complete(0, "alone"))
    });
    let run = server.chat(&["-n", "2", "--fan-out=auto", "-m", "m", "Well?"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let summary = run
        .stdout
        .lines()
        .filter(|line| line.contains("first delta"));
    let seconds = summary.map(|line| {
        let (_, rest) = line.split_once("first delta ").unwrap();
        rest.split(' ').next().unwrap().parse::<f64>().unwrap()
    });
    let seconds: Vec<f64> = seconds.collect();
    assert_eq!(seconds.len(), 2, "{}", run.stdout);
    assert!(seconds.iter().all(|s| *s >= 0.49), "{}", run.stdout);
}

#[test]
fn a_failed_request_is_reported_once_for_its_choices() {
    let failed = || {
        Reply::new(
            500,
            "application/json",
            br#"{"error":{"message":"Out of memory"}}"#,
        )
    };
    let server = Server::start(move |number, _| match number {
        0 => stream(&complete(0, "alone")),
        _ => failed(),
    });
    let args = [
        "-n",
        "3",
        "--fan-out",
        "--retries",
        "0",
        "--json",
        "-m",
        "m",
        "Well?",
    ];
    let run = server.chat(&args);
    assert_eq!(run.code, 3);
    assert_eq!(
        run.stderr.matches("Out of memory").count(),
        1,
        "{}",
        run.stderr
    );
    assert!(
        run.stderr.contains("did not finish: choice "),
        "{}",
        run.stderr
    );
    let run = replying(failed).chat(&args);
    assert_eq!(run.code, 1, "{}", run.stderr);
    let message = "status 500 Internal Server Error (request req-7): Out of memory\n";
    assert!(run.stderr.ends_with(message), "{}", run.stderr);
    assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
    assert!(run.stdout.contains("\"Out of memory\""), "{}", run.stdout);
}

#[test]
fn take_cancels_the_rest_after_the_first_choices() {
    let open = chunk(&json!({ "index": 1, "delta": { "content": "I think" } }));
    let server = replying(move || stream(&(open.clone() + &complete(0, "Seven."))).keep_open());
    let run = server.chat(&["-n", "2", "--take", "1", "-m", "m", "Well?"]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    assert!(run.stdout.contains("[0] finished (stop)"), "{}", run.stdout);
    assert!(run.stdout.contains("[1] cancelled"), "{}", run.stdout);

    let hanging = Server::start(|number, _| match number {
        0 | 1 => stream(&(complete(0, "Seven.") + "data: [DONE]\n\n")),
        _ => stream(": wait\n\n").keep_open(),
    });
    let run = hanging.chat(&[
        "-n",
        "4",
        "--take",
        "2",
        "--fan-out",
        "--json",
        "-m",
        "m",
        "Well?",
    ]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let ends = &run.json()["unbraid"]["choices"];
    let finished = ends
        .as_array()
        .unwrap()
        .iter()
        .filter(|choice| choice["end"] == "finished");
    assert_eq!(finished.count(), 2, "{ends}");

    let cut = replying(|| stream(&complete(0, "Seven.")));
    let run = cut.chat(&["-n", "2", "--take", "2", "-m", "m", "Well?"]);
    assert_eq!(run.code, 3, "only one of two finished: {}", run.stdout);
    assert_eq!(
        run.stderr,
        "unbraid: answer: expected 2 choices, got 1 (E30)\n"
    );
}
