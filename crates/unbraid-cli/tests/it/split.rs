//! `unbraid split`: the files that it writes.

use std::{fs, path::Path};

use serde_json::{Value, json};
use unbraid_testkit::fixture::Fixture;

use crate::{Run, collect, run_fixture, unbraid};

fn split(name: &str, out: &Path) -> Run {
    run_fixture(
        &format!("split --out {}", out.display()),
        &Fixture::named(name),
    )
}

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn json_file(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

#[test]
fn each_choice_and_each_call_has_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("deep/er");
    let run = split("openai_chat/openai-tools-and-text-in-six-choices", &out);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    let response = collect("openai_chat/openai-tools-and-text-in-six-choices").json();
    assert_eq!(json_file(&out.join("summary.json")), response);
    let mut file_count = 1;
    for choice in response["choices"].as_array().unwrap() {
        let index = &choice["index"];
        let text = fs::read_to_string(out.join(format!("choice-{index}.txt"))).unwrap();
        let message = &choice["message"];
        assert_eq!(text, message["content"].as_str().unwrap_or_default());
        let calls = message["tool_calls"].as_array().into_iter().flatten();
        for (position, call) in calls.enumerate() {
            let name = call["function"]["name"].as_str().unwrap();
            let file = json_file(&out.join(format!("choice-{index}-call-{position}-{name}.json")));
            assert_eq!(file["arguments"], call["function"]["arguments"]);
            assert_eq!(file["status"], "complete");
            assert_eq!(file["type"], "function");
            let parsed: Value = serde_json::from_str(file["arguments"].as_str().unwrap()).unwrap();
            assert_eq!(file["value"], parsed);
            file_count += 1;
        }
        file_count += 1;
    }
    assert_eq!(names(&out).len(), file_count);
    assert_eq!(run.stdout.lines().count(), file_count);
    assert!(run.stdout.lines().all(|line| Path::new(line).is_file()));
}

#[test]
fn reasoning_and_refusal_have_separate_files() {
    let dir = tempfile::tempdir().unwrap();
    split("openai_chat/deepseek-r01-r08-reasoning", dir.path());
    let reasoning = fs::read_to_string(dir.path().join("choice-0.reasoning.txt")).unwrap();
    assert!(!reasoning.is_empty());
    assert!(!dir.path().join("choice-0.refusal.txt").exists());
    split("openai_chat/openai-m04-refusal", dir.path());
    let is_refusal = |name: &String| name.ends_with(".refusal.txt");
    assert!(names(dir.path()).iter().any(is_refusal));
}

#[test]
fn a_tool_name_never_leaves_the_directory() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("a/b");
    let call = json!({ "choices": [{ "index": 0, "finish_reason": "tool_calls", "delta": { "tool_calls": [
        { "index": 0, "id": "1", "function": { "name": "../../x", "arguments": "" } },
        { "index": 1, "id": "2", "function": { "name": "/etc/\u{0}é".repeat(100), "arguments": "{}{\"a\":\"b\nc\"}" } },
    ] } }] });
    let stream = format!("data: {call}\n\ndata: [DONE]\n\n");
    let run = unbraid(&format!("split --out {}", out.display()), stream.as_bytes());
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(names(dir.path()), ["a"]);
    assert_eq!(names(&dir.path().join("a")), ["b"]);
    let files = names(&out);
    assert_eq!(files.len(), 4, "{files:?}");
    let first = json_file(&out.join("choice-0-call-0-.._.._x.json"));
    assert_eq!(
        (&first["value"], &first["name"]),
        (&json!({}), &json!("../../x"))
    );
    let second = json_file(&out.join(&files[1]));
    assert_eq!(second["value"], json!({ "a": "b\nc" }));
    assert_eq!(second["status"], "repaired");
}

#[test]
fn the_data_of_a_broken_stream_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let run = split("broken/openai-f07-cut-in-tool-arguments", dir.path());
    assert_eq!(run.code, 3);
    let call = names(dir.path())
        .into_iter()
        .rfind(|name| name.contains("-call-"))
        .unwrap();
    let call = json_file(&dir.path().join(call));
    assert_eq!(
        (&call["value"], &call["status"]),
        (&Value::Null, &json!("truncated"))
    );
    let run = unbraid(&format!("split --out {}", dir.path().display()), b"");
    assert_eq!(run.code, 1);
    let summary = json_file(&dir.path().join("summary.json"));
    assert_eq!(summary["unbraid"]["end"], "empty");
}

#[test]
fn files_of_an_earlier_run_are_replaced_and_no_temporary_file_remains() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("choice-0.txt"), "x".repeat(1 << 16)).unwrap();
    let name = "openai_chat/openai-c01-u01-one-choice";
    let run = split(name, dir.path());
    assert_eq!(run.code, 0, "{}", run.stderr);
    let text = fs::read_to_string(dir.path().join("choice-0.txt")).unwrap();
    assert_eq!(
        text,
        collect(name).json()["choices"][0]["message"]["content"]
    );
    assert_eq!(names(dir.path()), ["choice-0.txt", "summary.json"]);
}

#[cfg(unix)]
#[test]
fn symbolic_links_are_not_followed() {
    for name in ["choice-0.txt", "summary.json"] {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        fs::create_dir(&out).unwrap();
        let victim = dir.path().join("victim");
        fs::write(&victim, "precious").unwrap();
        for target in [&victim, &dir.path().join("absent")] {
            let link = out.join(name);
            std::os::unix::fs::symlink(target, &link).unwrap();
            let run = split("openai_chat/openai-c01-u01-one-choice", &out);
            assert_eq!(run.code, 1, "{}", run.stderr);
            let message = format!("unbraid: {}: is a symbolic link, ", link.display());
            assert!(run.stderr.starts_with(&message), "{}", run.stderr);
            assert!(link.is_symlink());
            fs::remove_file(&link).unwrap();
        }
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
        assert!(!dir.path().join("absent").exists());
        assert!(names(&out).iter().all(|name| !name.ends_with(".tmp")));
    }
}

#[test]
fn the_other_files_are_written_if_one_cannot_be() {
    let dir = tempfile::tempdir().unwrap();
    let blocked = ["choice-0.txt", "choice-1.txt"].map(|name| dir.path().join(name));
    for path in &blocked {
        fs::create_dir(path).unwrap();
    }
    let choices = ["a", "b", "c"].iter().enumerate().map(|(index, text)| {
        json!({ "index": index, "delta": { "content": text }, "finish_reason": (index < 2).then_some("stop") })
    });
    let chunk = json!({ "choices": choices.collect::<Vec<_>>() });
    let body = format!("data: {chunk}\n\n");
    let run = unbraid(
        &format!("split --out {}", dir.path().display()),
        body.as_bytes(),
    );
    assert_eq!(run.code, 1, "{}", run.stderr);
    assert_eq!(
        fs::read_to_string(dir.path().join("choice-2.txt")).unwrap(),
        "c"
    );
    let summary = json_file(&dir.path().join("summary.json"));
    assert_eq!(summary["choices"].as_array().unwrap().len(), 3);
    let written: Vec<_> = run.stdout.lines().map(Path::new).collect();
    let expected = ["choice-2.txt", "summary.json"].map(|name| dir.path().join(name));
    assert_eq!(written, expected);
    for path in &blocked {
        let message = format!("unbraid: {}: is a directory", path.display());
        assert!(run.stderr.contains(&message), "{}", run.stderr);
    }
    assert!(run.stderr.contains("choice 2"), "{}", run.stderr);
}

#[test]
fn a_directory_that_cannot_be_created_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    let run = unbraid(&format!("split --out {}", file.display()), b"");
    assert_eq!((run.code, run.stdout.as_str()), (1, ""));
    assert!(
        run.stderr.contains(file.to_str().unwrap()),
        "{}",
        run.stderr
    );
}

#[test]
fn an_input_that_cannot_be_opened_creates_no_directory() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let run = unbraid(&format!("split --out {} nowhere.sse", out.display()), b"");
    assert_eq!(run.code, 1);
    assert!(!out.exists());
}
