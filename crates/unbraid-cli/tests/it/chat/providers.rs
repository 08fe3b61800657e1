//! `chat --provider` and `--to`: other providers, and several at once, each a local replay of one of its streams.

use serde_json::{Value, json};
use unbraid_testkit::fixture::{Fixture, workspace_root};

use super::{chat, replying, server::Reply};
use crate::{Run, replay::Replay};

const ANTHROPIC: &str = "anthropic/anthropic-a02-a05-a15-thinking-text-call";
const RESPONSES: &str = "responses/openai-p09-p16-text";
const GEMINI: &str = "gemini/gemini-g01-g12-crlf-and-usage";
const OLLAMA: &str = "ollama/ollama-o03-o15-chat";
const COHERE: &str = "cohere/cohere-citations";
const OPENAI: &str = "openai_chat/openai-c01-u01-one-choice";

/// A replay of one stream of each provider, and the variables with its address.
struct Providers {
    replay: Replay,
    variables: Vec<(&'static str, String)>,
}

impl Providers {
    fn start() -> Self {
        Self::of(&[ANTHROPIC, RESPONSES, GEMINI, OLLAMA, COHERE, OPENAI], "")
    }

    fn of(names: &[&str], options: &str) -> Self {
        let path = |name: &&str| {
            let path = Fixture::named(name).path;
            let relative = path.strip_prefix(workspace_root()).unwrap_or(&path);
            relative.to_str().unwrap().to_owned()
        };
        let files: Vec<String> = names.iter().map(path).collect();
        let replay = Replay::of_files(&files, options);
        let address = format!("http://{}", replay.address());
        let variables = vec![
            ("OPENAI_BASE_URL", format!("{address}/v1")),
            ("ANTHROPIC_BASE_URL", address.clone()),
            ("GOOGLE_GEMINI_BASE_URL", address.clone()),
            ("OLLAMA_HOST", address.clone()),
            ("CO_API_URL", address),
        ];
        Self { replay, variables }
    }

    fn chat(&self, args: &[&str]) -> Run {
        let variables: Vec<(&str, &str)> = self
            .variables
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        chat(args, &variables, "")
    }
}

#[test]
fn every_provider_answers_a_question() {
    let providers = Providers::start();
    for (name, dialect, fixture) in [
        ("responses", "responses", RESPONSES),
        ("anthropic", "anthropic", ANTHROPIC),
        ("gemini", "gemini", GEMINI),
        ("ollama", "ollama", OLLAMA),
        ("cohere", "cohere", COHERE),
        ("openai", "chat", OPENAI),
    ] {
        let run = providers.chat(&["--provider", name, "-m", "x", "--json", "Well?"]);
        assert_eq!(run.code, 0, "{name}: {}", run.stderr);
        let printed = run.json();
        assert_eq!(printed["unbraid"]["dialect"], dialect, "{name}");
        let collected = crate::collect(fixture).json();
        assert_eq!(printed["choices"], collected["choices"], "{name}");
        assert_eq!(printed["usage"], collected["usage"], "{name}");
        assert_eq!(printed["unbraid"]["choices"][0].get("provider"), None);
        let target = format!("{name}:x");
        let run = providers.chat(&["--to", &target, "--text", "Well?"]);
        assert_eq!(run.code, 0, "{name}: {}", run.stderr);
        let content = collected["choices"][0]["message"]["content"].as_str();
        let text = content.unwrap_or_default();
        assert_eq!(run.stdout.trim_end(), text.trim_end(), "{name}");
    }
}

const JURY: [&str; 6] = [
    "--to",
    "openai:gpt-5-mini",
    "--to",
    "anthropic:claude-x",
    "--to",
    "ollama:qwen3:8b",
];

#[test]
fn several_providers_are_the_choices_of_one_answer() {
    let providers = Providers::start();
    let run = providers.chat(&[&JURY[..], &["--json", "Well?"]].concat());
    assert_eq!(run.code, 0, "{}", run.stderr);
    let printed = run.json();
    let fixtures = [OPENAI, ANTHROPIC, OLLAMA].map(|name| crate::collect(name).json());
    for (index, fixture) in fixtures.iter().enumerate() {
        let mut expected = fixture["choices"][0].clone();
        expected["index"] = json!(index);
        assert_eq!(printed["choices"][index], expected);
        let details = &printed["unbraid"]["choices"][index];
        assert_eq!(details["dialect"], fixture["unbraid"]["dialect"]);
        assert_eq!(details["usage"], fixture["usage"]);
        assert_eq!(details["model"], fixture["model"]);
    }
    assert_eq!(printed["unbraid"]["dialect"], Value::Null, "they differ");
    let provider = |index: usize| &printed["unbraid"]["choices"][index]["provider"];
    assert_eq!(*provider(0), "openai");
    assert_eq!(*provider(1), "anthropic");
    assert_eq!(*provider(2), "ollama");
}

#[cfg(unix)]
#[test]
fn several_providers_are_columns_of_one_screen() {
    let providers = Providers::start();
    let variables = providers.variables.iter();
    let mut args: Vec<String> = variables
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    for name in ["OPENAI_API_KEY", "ANTHROPIC_API_KEY"] {
        args.push(format!("{name}=none"));
    }
    args.extend([crate::UNBRAID, "chat", "--stay"].map(str::to_owned));
    args.extend(JURY.map(str::to_owned));
    args.push("Well?".to_owned());
    let terminal = unbraid_testkit::terminal::Terminal::run("env", args, (20, 140));
    let titles = ["openai:gpt-5-mini", "anthropic:claude-x", "ollama:qwen3:8b"];
    let is_in_row = |row: &str| titles.iter().all(|title| row.contains(title));
    terminal.wait(|screen| screen.alternate_screen() && screen.contents().lines().any(is_in_row));
    terminal.press("q");
    let left = terminal.end();
    assert_eq!(left.code, Some(0), "{}", left.contents);
    assert!(left.restored, "{}", left.contents);
    assert!(
        left.contents.contains("It rains here."),
        "{}",
        left.contents
    );
}

#[test]
fn lines_and_texts_name_the_provider_and_the_model() {
    let providers = Providers::start();
    let run = providers.chat(&[&JURY[..], &["Well?"]].concat());
    assert_eq!(run.code, 0, "{}", run.stderr);
    for line in [
        "[0] openai:gpt-5-mini   finished (stop)",
        "[1] anthropic:claude-x  finished (tool_use)",
        "[2] ollama:qwen3:8b     finished (stop)",
        "[1] It rains here.",
    ] {
        assert!(run.stdout.contains(line), "{line}: {}", run.stdout);
    }
    let run = providers.chat(&[&JURY[..], &["--text", "Well?"]].concat());
    assert_eq!(run.code, 0, "{}", run.stderr);
    let header = "==> choice 1 (anthropic:claude-x) <==\nIt rains here.\n";
    assert!(run.stdout.contains(header), "{}", run.stdout);
    let header = "==> choice 2 (ollama:qwen3:8b) <==\nHello\n";
    assert!(run.stdout.contains(header), "{}", run.stdout);
    let events = providers.chat(&[&JURY[..], &["--events", "Well?"]].concat());
    let mut choices: Vec<u64> = events
        .lines()
        .iter()
        .filter_map(|line| line["choice"].as_u64())
        .collect();
    choices.sort_unstable();
    choices.dedup();
    assert_eq!(choices, [0, 1, 2]);
}

#[test]
fn the_failure_of_a_provider_is_the_end_of_its_own_choice() {
    let providers = Providers::of(&[ANTHROPIC, OLLAMA], "");
    let run = providers.chat(&[&JURY[..], &["--json", "Well?"]].concat());
    assert_eq!(run.code, 3, "{}", run.stderr);
    let message = "unbraid: choice 0 (openai:gpt-5-mini): status 404 Not Found";
    assert!(run.stderr.starts_with(message), "{}", run.stderr);
    let printed = run.json();
    let details = &printed["unbraid"]["choices"];
    let ends: Vec<&Value> = (0..3).map(|index| &details[index]["end"]).collect();
    assert_eq!(ends, ["transport", "finished", "finished"]);
    assert_eq!(details[0]["error"]["cause"]["status"], 404);
    assert_eq!(
        (&details[0]["model"], &details[0]["dialect"]),
        (&json!("gpt-5-mini"), &Value::Null)
    );
    assert_eq!(
        printed["choices"][1]["message"]["content"],
        "It rains here."
    );
    // With --take, as many as requested are enough.
    let run = providers.chat(&[&JURY[..], &["--take", "2", "--text", "Well?"]].concat());
    assert_eq!(run.code, 0, "{}", run.stderr);
    let headers = run.stdout.matches("==> choice").count();
    assert_eq!(headers, 2, "{}", run.stdout);
    // Without any answer, the exit code says so.
    let args = ["--to", "openai:a", "--to", "openai:b", "--json", "Well?"];
    let run = providers.chat(&args);
    assert_eq!(run.code, 1, "{}", run.stderr);
    let ends = &run.json()["unbraid"]["choices"];
    assert_eq!(ends[1]["end"], "transport");
}

#[test]
fn an_error_within_a_stream_is_the_end_of_its_own_choice() {
    let fixtures = ["anthropic/anthropic-a19-error-mid-stream", OLLAMA];
    let providers = Providers::of(&fixtures, "");
    let args = ["--to", "anthropic:a", "--to", "ollama:b", "--json", "Well?"];
    let run = providers.chat(&args);
    assert_eq!(run.code, 3, "{}", run.stderr);
    let details = &run.json()["unbraid"]["choices"];
    assert_eq!(details[0]["end"], "server_error");
    assert_eq!(details[1]["end"], "finished");
}

#[test]
fn each_provider_gives_the_requested_number_of_answers() {
    let providers = Providers::of(&["gemini/gemini-g04-g05-candidates", ANTHROPIC], "");
    let to = ["--to", "gemini:g", "--to", "anthropic:a"];
    let run = providers.chat(&[&to[..], &["-n", "3", "--json", "Well?"]].concat());
    let printed = run.json();
    let dialects: Vec<&Value> = (0..6)
        .map(|index| &printed["unbraid"]["choices"][index]["dialect"])
        .collect();
    let (gemini, anthropic) = ("gemini", "anthropic");
    assert_eq!(
        dialects,
        [gemini, gemini, gemini, anthropic, anthropic, anthropic]
    );
    assert_eq!(
        printed["choices"][5]["message"]["content"],
        "It rains here."
    );
    assert_eq!(run.code, 0, "{}", run.stderr);
    // A single provider without n gets single requests as well.
    let args = [
        "--provider",
        "anthropic",
        "-m",
        "a",
        "-n",
        "2",
        "--json",
        "Well?",
    ];
    let run = providers.chat(&args);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(run.json()["choices"].as_array().unwrap().len(), 2);
}

#[test]
fn options_that_contradict_each_other_are_refused_before_anything_is_sent() {
    let server = replying(|| Reply::new(500, "text/plain", b""));
    let url = server.base_url();
    let two = ["--to", "openai:a", "--to", "anthropic:b"];
    for (options, message) in [
        (&["-m", "x"][..], "leave out -m"),
        (&["--record", "x.sse"], "--record writes one body"),
        (&["--fan-out"], "--fan-out is for one provider"),
        (&["--base-url", &url], "--base-url is of one provider"),
        (&["--api-key", "k"], "--api-key is of one provider"),
        (&["--provider", "openai"], "cannot be used with"),
        (&["--take", "3"], "--take 3 of 2 choices"),
        (&["--run-tool", "f=true"], "continues one choice"),
    ] {
        let variables = [
            ("OPENAI_BASE_URL", url.as_str()),
            ("ANTHROPIC_BASE_URL", url.as_str()),
            ("PATH", "/usr/bin:/bin"),
        ];
        let run = chat(&[&two[..], options, &["Well?"]].concat(), &variables, "");
        assert_eq!(run.code, 2, "{options:?}: {}", run.stderr);
        assert!(run.stderr.contains(message), "{options:?}: {}", run.stderr);
    }
    for target in ["gpt-4o", "claude:x", "openai:"] {
        let run = chat(&["--to", target, "Well?"], &[], "");
        assert_eq!(run.code, 2, "{target}: {}", run.stderr);
    }
    let run = chat(
        &["--provider", "anthropic", "Well?"],
        &[("OPENAI_MODEL", "m")],
        "",
    );
    assert_eq!(run.code, 2);
    assert!(
        run.stderr.contains("no model: name one with -m"),
        "{}",
        run.stderr
    );
    let request = r#"{"logit_bias":{"1":2}}"#;
    let args = [
        "--provider",
        "anthropic",
        "-m",
        "a",
        "--request",
        "-",
        "--base-url",
        &url,
    ];
    let run = chat(&[&args[..], &["Well?"]].concat(), &[], request);
    assert_eq!(run.code, 2, "{}", run.stderr);
    assert!(run.stderr.contains("logit_bias"), "{}", run.stderr);
    assert!(server.requests().is_empty());
}

#[test]
fn each_provider_gets_its_own_key_and_none_is_printed() {
    const KEYS: [&str; 2] = ["sk-openai-never-seen", "sk-ant-never-seen"];
    let server = replying(|| {
        let error = json!({ "error": { "message": format!("wrong: {KEYS:?}"), "type": "x" } });
        Reply::new(401, "application/json", error.to_string().as_bytes())
    });
    let url = server.base_url();
    let variables = [
        ("OPENAI_BASE_URL", url.as_str()),
        ("OPENAI_API_KEY", KEYS[0]),
        ("ANTHROPIC_BASE_URL", url.as_str()),
        ("ANTHROPIC_API_KEY", KEYS[1]),
    ];
    let args = ["--to", "openai:a", "--to", "anthropic:b", "--json", "Well?"];
    let run = chat(&args, &variables, "");
    assert_eq!(run.code, 1, "{}", run.stderr);
    assert!(
        run.stderr.contains("is ANTHROPIC_API_KEY set"),
        "{}",
        run.stderr
    );
    let requests = server.requests();
    let of = |path: &str| {
        let own = requests.iter().find(|request| request.head.contains(path));
        own.unwrap().head.to_ascii_lowercase()
    };
    assert!(of("/chat/completions").contains("bearer sk-openai-never-seen"));
    let anthropic = of("/messages");
    assert!(
        anthropic.contains("x-api-key: sk-ant-never-seen"),
        "{anthropic}"
    );
    assert!(anthropic.contains("anthropic-version: "), "{anthropic}");
    let details = &run.json()["unbraid"]["choices"];
    assert_eq!(details[1]["error"]["cause"]["status"], 401);
    for (index, key) in KEYS.iter().enumerate() {
        let own = details[index].to_string();
        assert!(!own.contains(key), "{own}");
    }
}

#[test]
fn a_recording_of_another_provider_can_be_replayed() {
    let providers = Providers::start();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("answer.sse");
    let file = file.to_str().unwrap();
    let args = ["--to", "anthropic:a", "--record", file, "--text", "Well?"];
    let run = providers.chat(&args);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let fixture = Fixture::named(ANTHROPIC).bytes;
    assert_eq!(std::fs::read(file).unwrap(), fixture);
    let again = Replay::of_files(&[file.to_owned()], "");
    let url = format!("http://{}", again.address());
    let variables = [("ANTHROPIC_BASE_URL", url.as_str())];
    let run = chat(&["--to", "anthropic:a", "--text", "Well?"], &variables, "");
    assert_eq!(run.stdout, "It rains here.\n");
    drop(providers.replay);
}
