//! `unbraid watch`: prefixed lines, colours, and the summary.

mod live;

use unbraid_testkit::fixture::Fixture;

use crate::{Run, TIMEOUT, UNBRAID, unbraid};

/// Runs `unbraid <args>` with an input and these variables. All other variables for colours are unset.
pub(crate) fn run(args: &str, stdin: &[u8], variables: &[(&str, &str)]) -> Run {
    let mut command = assert_cmd::Command::new(UNBRAID);
    for variable in [
        "NO_COLOR",
        "CLICOLOR",
        "CLICOLOR_FORCE",
        "TERM",
        "COLORTERM",
    ] {
        command.env_remove(variable);
    }
    command
        .args(args.split_whitespace())
        .envs(variables.iter().copied())
        .write_stdin(stdin)
        .timeout(TIMEOUT);
    command.output().unwrap().into()
}

fn watch(fixture: &str) -> Run {
    let fixture = Fixture::named(fixture);
    run(
        &format!("watch {}", crate::flags(&fixture)),
        &fixture.bytes,
        &[],
    )
}

/// The lines of a choice before the summary, without the prefix.
fn lines_of(run: &Run, choice: u32) -> Vec<&str> {
    let prefix = format!("[{choice}] ");
    let (lines, _) = parts(run);
    lines
        .iter()
        .filter_map(|line| line.strip_prefix(&prefix))
        .collect()
}

/// The prefixed lines, and the summary after the last empty line.
fn parts(run: &Run) -> (Vec<&str>, Vec<&str>) {
    let lines: Vec<&str> = run.stdout.lines().collect();
    let blank = lines.iter().rposition(|line| line.is_empty()).unwrap();
    (lines[..blank].to_vec(), lines[blank + 1..].to_vec())
}

fn delta(choice: u32, text: &str) -> String {
    let delta =
        serde_json::json!({ "choices": [{ "index": choice, "delta": { "content": text } }] });
    format!("data: {delta}\n\n")
}

fn finish(choice: u32) -> String {
    format!(
        "data: {{\"choices\":[{{\"index\":{choice},\"delta\":{{}},\"finish_reason\":\"stop\"}}]}}\n\n"
    )
}

const DONE: &str = "data: [DONE]\n\n";

#[test]
fn each_line_is_prefixed_with_its_choice() {
    let run = watch("openai_chat/openai-five-choices-plan");
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    let (lines, summary) = parts(&run);
    for line in &lines {
        let digit = line
            .strip_prefix('[')
            .and_then(|rest| rest.split_once("] "));
        assert!(
            digit.is_some_and(|(choice, _)| choice.parse::<u32>().is_ok()),
            "{line:?}"
        );
    }
    for choice in 0..5 {
        assert!(!lines_of(&run, choice).is_empty(), "{choice}");
        let row = summary[choice as usize];
        assert!(row.starts_with(&format!("[{choice}] finished (")), "{row}");
        assert!(
            row.contains("first delta 0.") && row.ends_with(" s"),
            "{row}"
        );
    }
    assert!(summary[5].starts_with("stream closed"), "{summary:?}");
    assert!(!run.stdout.contains('\u{1b}'));
}

#[test]
fn warnings_that_repeat_one_are_counted() {
    let refused = "data: {\"choices\":[{\"index\":-1,\"delta\":{\"content\":\"a\"}}]}\n\n";
    let stream = delta(0, "b") + &refused.repeat(70) + &finish(0) + DONE;
    let run = run("watch", stream.as_bytes(), &[]);
    let (_, summary) = parts(&run);
    let warnings: Vec<&str> = summary
        .into_iter()
        .filter(|line| line.starts_with("warning: "))
        .collect();
    let [repeated, dropped] = *warnings else {
        panic!("{warnings:?}");
    };
    assert!(repeated.starts_with("warning: event 1: "), "{repeated}");
    assert!(
        repeated.ends_with(" (E11), and 63 more like it"),
        "{repeated}"
    );
    assert_eq!(dropped, "warning: 6 further warnings");
    assert!(run.stdout.contains("  ~1 completion token\n"));
}

#[test]
fn the_complete_text_is_printed() {
    let fixture = Fixture::named("openai_chat/openai-eight-choices-eight-languages");
    let run = run("watch", &fixture.bytes, &[]);
    let collected = crate::run_fixture("collect", &fixture).json();
    let without_spaces = |text: &str| -> String { text.split_whitespace().collect() };
    for choice in collected["choices"].as_array().unwrap() {
        let index = choice["index"].as_u64().unwrap() as u32;
        let content = choice["message"]["content"].as_str().unwrap();
        assert_eq!(
            without_spaces(&lines_of(&run, index).concat()),
            without_spaces(content),
            "{index}"
        );
    }
}

#[test]
fn calls_reasoning_and_refusals_are_marked() {
    let calls = watch("openai_chat/openai-t28-t43-parallel-tools-two-choices");
    assert_eq!(
        lines_of(&calls, 0),
        [
            "> get_wind {",
            r#">   "harbour": "Skagen","#,
            r#">   "unit": "knots""#,
            "> }",
            "> get_tide {",
            r#">   "harbour": "Skagen","#,
            r#">   "day": "2026-05-01""#,
            "> }",
        ]
    );
    assert!(calls.stdout.contains("[0] finished (tool_calls)  2 calls"));
    let reasoning = watch("openai_chat/glm-c12-text-and-call-in-one-delta");
    assert_eq!(
        lines_of(&reasoning, 0),
        [
            "~ Two things at once.",
            "Opening the sluice.",
            "> sluice {",
            r#">   "cm": 12"#,
            "> }",
            " Done soon.",
        ]
    );
    let refusal = watch("openai_chat/openai-m04-refusal");
    assert!(lines_of(&refusal, 0)[0].starts_with("! I'm sorry"));
}

#[test]
fn a_truncated_call_is_marked() {
    let run = watch("broken/openai-f07-cut-in-tool-arguments");
    assert_eq!(run.code, 3);
    assert!(
        lines_of(&run, 0)
            .iter()
            .any(|line| line.ends_with(" (truncated)")),
        "{}",
        run.stdout
    );
    assert!(run.stdout.contains("\n[0] interrupted"));
    assert!(
        run.stderr
            .contains("did not finish: choice 0 (interrupted)")
    );
}

#[test]
fn the_summary_has_tokens_warnings_and_the_end() {
    let per_choice = watch("openai_chat/llamacpp-usage-per-choice");
    for tokens in [" 9 tokens", "20 tokens", "31 tokens"] {
        assert!(per_choice.stdout.contains(tokens), "{}", per_choice.stdout);
    }
    let (_, summary) = parts(&per_choice);
    assert_eq!(
        summary[3],
        "stream closed  12 prompt  60 completion  72 total tokens"
    );
    let running = watch("openai_chat/vllm-u04-u08-continuous-usage");
    assert!(running.stdout.contains(" tokens  first delta"));
    let (_, summary) = parts(&running);
    let is_estimated = |line: &&&str| line.starts_with('[') && line.contains("  ~");
    assert_eq!(
        summary.iter().filter(is_estimated).count(),
        2,
        "{summary:?}"
    );
    assert!(!summary[2].contains('~'), "reported: {}", summary[2]);
    let cut = run("watch", delta(0, "tiktoken is great!").as_bytes(), &[]);
    let (_, summary) = parts(&cut);
    assert!(summary[0].contains("  ~6 tokens  "), "{summary:?}");
    assert_eq!(summary[1], "stream closed  ~6 completion tokens");

    let warned = run(
        "watch",
        format!("{}data: {{oops\n\n{}{DONE}", delta(0, "Hi"), finish(0)).as_bytes(),
        &[],
    );
    assert_eq!(warned.code, 0);
    let (_, summary) = parts(&warned);
    assert!(
        summary[2].starts_with("warning: event 1: ") && summary[2].ends_with("(X13)"),
        "{summary:?}"
    );
}

#[test]
fn exit_codes_and_messages_equal_those_of_collect() {
    for fixture in Fixture::all().iter().step_by(6) {
        let watched = run(
            &format!("watch {}", crate::flags(fixture)),
            &fixture.bytes,
            &[],
        );
        let collected = crate::run_fixture("collect", fixture);
        assert_eq!(
            watched.code, collected.code,
            "{}: {}",
            fixture.name, watched.stdout
        );
        let messages = |run: &Run| run.stderr.replace("\r\n", "\n");
        assert_eq!(messages(&watched), messages(&collected), "{}", fixture.name);
    }
}

#[test]
fn input_that_is_not_a_stream_is_reported() {
    let zstd = unbraid("watch", b"\x28\xb5\x2f\xfd\x24\n\x00");
    assert_eq!(zstd.code, 1);
    assert!(zstd.stderr.contains("this is zstd"), "{}", zstd.stderr);
    assert_eq!(zstd.stdout, "stream not_a_stream\n");
    let nowhere = unbraid("watch nowhere.sse", b"");
    assert_eq!((nowhere.code, nowhere.stdout.as_str()), (1, ""));
    assert!(nowhere.stderr.contains("unbraid: nowhere.sse: "));
    let strict = run(
        "watch --strict",
        format!("{}data: {{oops\n\n", delta(0, "Hi")).as_bytes(),
        &[],
    );
    assert_eq!(strict.code, 3);
    assert_eq!(lines_of(&strict, 0), ["Hi"]);
    assert!(strict.stdout.contains("stream malformed"));
}

#[test]
fn colours_are_used_on_terminals_and_when_forced() {
    let stream = format!(
        "{}{}{}{}{DONE}",
        delta(0, "a"),
        delta(1, "b"),
        finish(0),
        finish(1)
    );
    let has_colours = |variables: &[(&str, &str)]| {
        let run = run("watch", stream.as_bytes(), variables);
        run.stdout.contains('\u{1b}')
    };
    assert!(!has_colours(&[]), "a pipe");
    assert!(has_colours(&[("CLICOLOR_FORCE", "1")]));
    assert!(!has_colours(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]));
    let run = run("watch", stream.as_bytes(), &[("CLICOLOR_FORCE", "1")]);
    assert!(
        run.stdout.contains("\u{1b}[94m[0] a\u{1b}[0m\n"),
        "{:?}",
        run.stdout
    );
    assert!(
        run.stdout.contains("\u{1b}[32m[1] b\u{1b}[0m\n"),
        "{:?}",
        run.stdout
    );
}

#[test]
fn a_model_cannot_control_the_terminal() {
    let call = "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"x\",\"function\":{\"name\":\"f\\u001b[m\",\"arguments\":\"{\\n}\"}}]}}]}\n\n";
    let reason = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"\\u001b]0;x\\u0007\"}]}\n\n";
    let content = delta(0, "\u{1b}[2J\ttab\u{9b}31m\rgone\u{8}\nnext\u{202e}\n");
    let stream = format!("{content}{call}{reason}{DONE}");
    for force in ["0", "1"] {
        let run = run("watch", stream.as_bytes(), &[("CLICOLOR_FORCE", force)]);
        let text = run
            .stdout
            .replace("\u{1b}[94m", "")
            .replace("\u{1b}[1m", "")
            .replace("\u{1b}[0m", "");
        let is_printable = |c: char| !c.is_control() || c == '\n' || c == '\t';
        assert!(text.chars().all(is_printable), "{text:?}");
        assert!(
            text.contains("[0] \\u{1b}[2J\ttab\\u{9b}31m\\rgone\\u{8}\n[0] next\\u{202e}\n"),
            "{text:?}"
        );
        assert!(text.contains("[0] > f\\u{1b}[m {}\n"), "{text:?}");
        assert!(text.contains("finished (\\u{1b}]0;x\\u{7})"), "{text:?}");
    }
}

#[test]
fn a_picture_of_a_stream_is_written_as_svg() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("picture.svg");
    let stream = format!(
        "{}{}{}data: [DONE]\n\n",
        delta(0, "a <b> & \u{1b}[2J\u{ffff}"),
        delta(1, "\u{96e8}"),
        finish(0),
    );
    let run = unbraid(
        &format!("watch --svg {}", file.display()),
        stream.as_bytes(),
    );
    assert_eq!((run.code, run.stdout.as_str()), (3, ""));
    assert!(
        run.stderr.contains("did not finish: choice 1"),
        "{}",
        run.stderr
    );
    let svg = std::fs::read_to_string(&file).unwrap();
    assert!(
        svg.starts_with("<svg xmlns=") && svg.ends_with("</svg>\n"),
        "{svg}"
    );
    assert!(svg.contains("&lt;b&gt; &amp; \\u{1b}[2J\u{fffd}"), "{svg}");
    assert!(
        svg.contains("\u{2713} stop") && svg.contains("\u{2717} done_without_finish"),
        "{svg}"
    );
    assert!(!svg.contains(|c: char| c.is_control() && c != '\n'));
    let nothing = dir.path().join("nothing.svg");
    let run = unbraid(&format!("watch --svg {}", nothing.display()), b"");
    assert_eq!(run.code, 1);
    assert!(!nothing.exists());
}
