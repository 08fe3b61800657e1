//! Every example prints the output that `README.md` documents.
#![cfg(test)]

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Runs an example and compares its output with the block under its heading.
#[track_caller]
fn check(name: &str) {
    assert_eq!(printed(name), documented(name), "{name}");
}

#[track_caller]
fn printed(name: &str) -> String {
    let output = Command::new(binary(name))
        .output()
        .expect("the example runs");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {stderr}");
    String::from_utf8(output.stdout).expect("the output is UTF-8")
}

/// The path of an example's binary: `examples` is next to the directory of the test's own binary.
fn binary(name: &str) -> PathBuf {
    let test = env::current_exe().expect("the path of this test");
    let profile = test
        .parent()
        .and_then(Path::parent)
        .expect("the test is in <profile>/deps");
    let example = profile
        .join("examples")
        .join(format!("{name}{}", env::consts::EXE_SUFFIX));
    assert!(
        example.exists(),
        "{} is missing: `cargo test -p unbraid-examples` builds it, `--test outputs` alone does not",
        example.display()
    );
    example
}

fn package() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The output block in the section of an example.
fn documented(name: &str) -> String {
    let readme = fs::read_to_string(package().join("README.md")).expect("the README can be read");
    let readme = readme.replace("\r\n", "\n");
    let section = readme
        .split("\n## ")
        .find(|section| section.starts_with(name));
    let section = section.unwrap_or_else(|| panic!("README.md has no section for {name}"));
    let command = format!("cargo run --example {name}\n");
    assert!(
        section.contains(&command),
        "{name}: README.md does not give its command"
    );
    let (_, block) = section
        .split_once("```text\n")
        .expect("the section has an output block");
    let (block, _) = block.split_once("```").expect("the block is closed");
    block.to_owned()
}

#[test]
fn bedrock() {
    check("bedrock");
}

#[test]
fn best_of_n() {
    check("best_of_n");
}

#[test]
fn concurrent() {
    check("concurrent");
}

#[test]
fn count_cancelled() {
    check("count_cancelled");
}

#[test]
fn flat_view() {
    check("flat_view");
}

#[test]
fn late_subscriber() {
    check("late_subscriber");
}

#[test]
fn print_choices() {
    check("print_choices");
}

#[test]
fn request() {
    check("request");
}

#[test]
fn sequential() {
    check("sequential");
}

#[test]
fn single() {
    check("single");
}

#[test]
fn typed_request() {
    check("typed_request");
}

#[test]
fn without_tokio() {
    check("without_tokio");
}

#[test]
fn run_tools() {
    check("run_tools");
}

#[test]
fn stream_field() {
    check("stream_field");
}

#[test]
fn agent() {
    check("agent");
}

#[test]
fn agent_race() {
    check("agent_race");
}

#[test]
fn typed_arguments() {
    check("typed_arguments");
}

#[test]
fn judge() {
    check("judge");
}

#[test]
fn majority() {
    check("majority");
}

#[test]
fn retry_truncated() {
    check("retry_truncated");
}

#[test]
fn every_example_is_short_and_has_a_test() {
    let tests = fs::read_to_string(package().join("tests/outputs.rs")).expect("this file");
    for entry in fs::read_dir(package()).expect("the package can be listed") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|extension| extension == "rs") {
            let name = path
                .file_stem()
                .and_then(|name| name.to_str())
                .expect("the name is UTF-8");
            let lines = fs::read_to_string(&path)
                .expect("the example can be read")
                .lines()
                .count();
            assert!(lines <= 60, "{name} has {lines} lines");
            assert!(
                tests.contains(&format!("check(\"{name}\")"))
                    || tests.contains(&format!("fn {name}()")),
                "{name} has no test"
            );
        }
    }
}

/// Two processes need a log that both can reach.
#[cfg(unix)]
#[test]
fn two_processes() {
    let Some(redis) = unbraid_testkit::servers::RedisServer::new() else {
        return; // The line that was printed says what is missing.
    };
    let output = Command::new(binary("two_processes"))
        .env("REDIS_URL", redis.url())
        .output()
        .expect("the example runs");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let printed = String::from_utf8(output.stdout).expect("the output is UTF-8");
    assert_eq!(printed, documented("two_processes"));
}
