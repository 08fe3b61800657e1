//! Several answers: by a request each, and the first ones only.

use std::time::Duration;

use serde_json::json;

use super::{
    answering, chunk,
    server::{Reply, Server},
    stream, whole,
};

#[test]
fn fan_out_sends_a_request_without_n_for_each_choice() {
    let server = Server::start(|number, _| stream(&whole(0, &format!("answer {number}"))));
    let run = server.chat(&["-n", "3", "--fan-out", "--json", "-m", "m", "Well?"]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    assert_eq!(run.json()["choices"].as_array().unwrap().len(), 3);
    assert_eq!(server.asked().len(), 3);
    assert!(
        server
            .asked()
            .iter()
            .all(|asked| asked.body.get("n").is_none())
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
    let done = events
        .lines()
        .into_iter()
        .filter(|line| line["type"] == "content.done");
    assert_eq!(
        done.filter(|line| line["content"].as_str().unwrap().starts_with("answer "))
            .count(),
        3
    );
    let never = server.chat(&["-n", "3", "--fan-out=never", "-m", "m", "Well?"]);
    assert_eq!((never.code, server.asked().len()), (3, 7));
}

#[test]
fn fan_out_goes_by_n_first_if_it_is_auto() {
    let server = Server::start(|_, asked| match asked.body.get("n") {
        None => stream(&whole(0, "alone")),
        Some(_) => {
            let error = json!({ "error": { "message": "n must be 1", "param": "n" } });
            Reply::of(400, "application/json", error.to_string().as_bytes())
        }
    });
    let run = server.chat(&["-n", "2", "--fan-out=auto", "-m", "m", "Well?"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stdout.contains("[1] alone\n"), "{}", run.stdout);
    assert_eq!(server.asked().len(), 3);
    let native = server.chat(&["-n", "2", "-m", "m", "Well?"]);
    assert_eq!(native.code, 1);
    assert!(
        native.stderr.contains("n must be 1; --fan-out asks"),
        "{}",
        native.stderr
    );
}

#[test]
fn fan_out_counts_time_from_the_first_request() {
    let server = Server::start(|number, _| {
        if number == 0 {
            return stream(": wait\n\n").then(Duration::from_millis(500), &whole(0, "alone"));
        }
        stream(&whole(0, "alone"))
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
fn a_request_that_fails_is_told_once_for_its_choices() {
    let failed = || {
        Reply::of(
            500,
            "application/json",
            br#"{"error":{"message":"Out of memory"}}"#,
        )
    };
    let server = Server::start(move |number, _| match number {
        0 => stream(&whole(0, "alone")),
        _ => failed(),
    });
    let words = [
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
    let run = server.chat(&words);
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
    let run = answering(failed).chat(&words);
    assert_eq!(run.code, 1, "{}", run.stderr);
    let told = "status 500 Internal Server Error (request req-7): Out of memory\n";
    assert!(run.stderr.ends_with(told), "{}", run.stderr);
    assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
    assert!(run.stdout.contains("\"Out of memory\""), "{}", run.stdout);
}

#[test]
fn the_first_that_finish_are_enough() {
    let open = chunk(&json!({ "index": 1, "delta": { "content": "I think" } }));
    let server = answering(move || stream(&(open.clone() + &whole(0, "Seven."))).held());
    let run = server.chat(&["-n", "2", "--take", "1", "-m", "m", "Well?"]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    assert!(run.stdout.contains("[0] finished (stop)"), "{}", run.stdout);
    assert!(run.stdout.contains("[1] cancelled"), "{}", run.stdout);

    let hanging = Server::start(|number, _| match number {
        0 | 1 => stream(&(whole(0, "Seven.") + "data: [DONE]\n\n")),
        _ => stream(": wait\n\n").held(),
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

    let cut = answering(|| stream(&whole(0, "Seven.")));
    let run = cut.chat(&["-n", "2", "--take", "2", "-m", "m", "Well?"]);
    assert_eq!(run.code, 3, "one is not two: {}", run.stdout);
    assert_eq!(run.stderr, "unbraid: answer: E30: expected 2, got 1\n");
}
