//! `unbraid generate`: the man page and the completion scripts.

use std::process::{Command, Stdio};

use crate::{documentation::help, unbraid};

#[test]
fn completion_scripts_name_the_commands() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let run = unbraid(&format!("generate {shell}"), b"");
        assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{shell}");
        for word in [
            "collect",
            "chat",
            "replay",
            "expect-choices",
            "fault",
            "after-last",
        ] {
            assert!(run.stdout.contains(word), "{shell}: {word}");
        }
        // The name of the first version.
        let alias = unbraid(&format!("completions {shell}"), b"");
        assert_eq!(alias.stdout, run.stdout, "{shell}");
    }
}

/// A man page without roff's escapes.
fn unescaped(page: &str) -> String {
    let text = page
        .replace("\\-", "-")
        .replace("\\fB", "")
        .replace("\\fI", "");
    text.replace("\\fR", "").replace("\\e", "\\")
}

#[test]
fn the_man_page_has_every_command_option_and_example() {
    let run = unbraid("generate man", b"");
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    assert!(run.stdout.contains(".TH unbraid 1"), "{}", run.stdout);
    let page = unescaped(&run.stdout);
    for command in help("").commands {
        let help = help(&command);
        let name = format!("UNBRAID {}", command.to_uppercase());
        assert!(page.contains(&name), "{name}");
        for option in &help.options {
            assert!(page.contains(&option.name), "{command}: {}", option.name);
            if let Some(variable) = &option.env {
                assert!(page.contains(variable.as_str()), "{command}: {variable}");
            }
        }
        for example in &help.examples {
            assert!(page.contains(example.as_str()), "{command}: {example}");
        }
    }
    for section in ["NAME", "SYNOPSIS", "DESCRIPTION", "EXIT CODES", "EXAMPLES"] {
        assert!(page.contains(section), "{section}");
    }
}

#[test]
fn groff_accepts_the_man_page() {
    let page = unbraid("generate man", b"").stdout;
    let groff = Command::new("groff")
        .args(["-man", "-ww", "-Tutf8", "-P-c", "-rLL=100n"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut groff) = groff else {
        println!("skipped: no groff");
        return;
    };
    let mut stdin = groff.stdin.take().unwrap();
    let writer = std::thread::spawn(move || std::io::Write::write_all(&mut stdin, page.as_bytes()));
    let output = groff.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(
        shown.contains(
            "unbraid collect answer.sse | jq '.unbraid.choices[] | select(.end != \"finished\")'"
        ),
        "{shown}"
    );
}

#[test]
fn a_closed_pipe_and_an_unknown_target_are_handled() {
    crate::pipes::run_without_reader_with(&["generate", "man"], 0);
    crate::pipes::run_without_reader_with(&["generate", "bash"], 0);
    assert_eq!(unbraid("generate csh", b"").code, 2);
}
