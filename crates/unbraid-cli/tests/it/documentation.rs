//! The examples of docs/command-line.md show the actual output.
//!
//! With `UNBRAID_BLESS` set, the test replaces the outputs in the document.

use std::{env, fs, process::Command};

use unbraid_testkit::fixture::workspace_root;

use crate::{Run, UNBRAID};

/// The output of a command that runs in the root of the workspace. A temporary directory replaces `answers`.
fn output(args: &str) -> String {
    let dir = tempfile::tempdir().unwrap();
    let answers = dir.path().join("answers").display().to_string();
    let run = Command::new(UNBRAID)
        .args(args.split_whitespace().map(|arg| match arg {
            "answers" => &answers,
            arg => arg,
        }))
        .current_dir(workspace_root())
        .output()
        .unwrap();
    let run = Run::from(run);
    format!("{}{}", run.stdout, run.stderr).replace(&answers, "answers")
}

#[test]
fn examples_in_the_document_show_the_actual_output() {
    let path = workspace_root().join("docs/command-line.md");
    let document = fs::read_to_string(&path).unwrap();
    let mut actual = String::new();
    let mut rest = document.as_str();
    let mut examples = 0;
    while let Some((before, example)) = rest.split_once("```console\n$ unbraid ") {
        let (args, example) = example.split_once('\n').unwrap();
        let (_, after) = example.split_once("```\n").unwrap();
        let printed = output(args);
        let parts = [
            before,
            "```console\n$ unbraid ",
            args,
            "\n",
            &printed,
            "```\n",
        ];
        actual.extend(parts);
        rest = after;
        examples += 1;
    }
    actual.push_str(rest);
    assert!(examples >= 4);
    if env::var_os("UNBRAID_BLESS").is_some() {
        fs::write(&path, actual).unwrap();
    } else {
        assert_eq!(actual, document);
    }
}

/// What the help of a command says.
pub(crate) struct Help {
    /// The names of its subcommands.
    pub(crate) commands: Vec<String>,
    pub(crate) options: Vec<HelpOption>,
    /// The lines below `Examples:`.
    pub(crate) examples: Vec<String>,
}

pub(crate) struct HelpOption {
    /// With its dashes.
    pub(crate) name: String,
    /// Whether the option belongs to every command.
    is_shared: bool,
    pub(crate) env: Option<String>,
    default: Option<String>,
}

/// Parses the help of a subcommand, or of the command itself for an empty name.
pub(crate) fn help(command: &str) -> Help {
    let run = crate::unbraid(&format!("{command} --help"), b"");
    assert_eq!(run.code, 0, "{}", run.stderr);
    let mut help = Help {
        commands: Vec::new(),
        options: Vec::new(),
        examples: Vec::new(),
    };
    let mut section = "";
    for line in run.stdout.lines() {
        let text = line.trim_start();
        let indent = line.len() - text.len();
        if indent == 0 && line.ends_with(':') {
            section = line;
        } else if section == "Commands:" && indent == 2 {
            help.commands
                .extend(text.split(' ').next().map(str::to_owned));
        } else if section == "Examples:" && indent == 2 {
            help.examples.push(text.to_owned());
        } else if indent < 8 && text.starts_with('-') {
            let long = text.split(", ").last().unwrap();
            let end = long.find([' ', '[', '=']).unwrap_or(long.len());
            help.options.push(HelpOption {
                name: long[..end].to_owned(),
                is_shared: section == "How the stream is read:",
                env: None,
                default: None,
            });
        } else if let (Some(option), Some(value)) =
            (help.options.last_mut(), text.strip_prefix('['))
        {
            let value = value.trim_end_matches(']');
            option.env = option
                .env
                .take()
                .or_else(|| value.strip_prefix("env: ").map(str::to_owned));
            let default = value.strip_prefix("default: ").map(str::to_owned);
            option.default = option.default.take().or(default);
        }
    }
    help.commands.retain(|command| command != "help");
    assert!(!help.examples.is_empty(), "{command}");
    help
}

/// The part of the page about a command, up to the next command.
fn section<'p>(page: &'p str, command: &str) -> &'p str {
    let heading = format!("\n## {command}\n");
    let (_, section) = page
        .split_once(&heading)
        .unwrap_or_else(|| panic!("{heading}"));
    section.split("\n## ").next().unwrap()
}

/// The options in the first cells of the tables of a part of the page, each with its row.
fn documented(section: &str) -> Vec<(String, &str)> {
    let mut documented = Vec::new();
    for row in section.lines().filter(|line| line.starts_with("| `-")) {
        let cell = row[1..].split(" | ").next().unwrap();
        for code in cell.split('`').skip(1).step_by(2) {
            let end = code.find([' ', '=']).unwrap_or(code.len());
            documented.push((code[..end].to_owned(), row));
        }
    }
    documented
}

#[track_caller]
fn check_options(command: &str, options: &[&HelpOption], section: &str) {
    let documented = documented(section);
    for option in options {
        let row = documented.iter().find(|(name, _)| *name == option.name);
        let Some((_, row)) = row else {
            panic!("docs/command-line.md lacks {command} {}", option.name);
        };
        for value in option.default.iter().chain(&option.env) {
            assert!(
                row.contains(value.as_str()),
                "{command} {}: {value}",
                option.name
            );
        }
    }
    for (name, _) in documented.iter().filter(|(name, _)| name.starts_with("--")) {
        let exists = options.iter().any(|option| option.name == *name);
        assert!(
            exists,
            "docs/command-line.md has {command} {name}, which does not exist"
        );
    }
}

#[test]
fn the_document_has_every_command_and_option_with_its_default() {
    let path = workspace_root().join("docs/command-line.md");
    let page = fs::read_to_string(path).unwrap();
    let (introduction, _) = page.split_once("\n## ").unwrap();
    let main = help("");
    assert!(main.commands.len() >= 9, "{:?}", main.commands);
    let shared: Vec<&HelpOption> = main.options.iter().filter(|o| o.is_shared).collect();
    assert_eq!(shared.len(), 6);
    check_options("", &shared, introduction);
    for command in &main.commands {
        let line = format!("\nunbraid {command} ");
        assert!(
            introduction.contains(&line) || introduction.contains(&format!("```text{line}")),
            "{command} is not in the list of commands"
        );
        let help = help(command);
        let is_own = |option: &&HelpOption| {
            !option.is_shared && !["--help", "--version"].contains(&option.name.as_str())
        };
        let own: Vec<&HelpOption> = help.options.iter().filter(is_own).collect();
        check_options(command, &own, section(&page, command));
    }
}

#[test]
fn defaults_and_variables_are_those_of_the_parser() {
    let chat = help("chat");
    let option = |name: &str| {
        chat.options
            .iter()
            .find(|option| option.name == name)
            .unwrap()
    };
    assert_eq!(option("--model").env.as_deref(), Some("OPENAI_MODEL"));
    assert_eq!(option("--api-key").env.as_deref(), Some("OPENAI_API_KEY"));
    assert_eq!(option("--base-url").env.as_deref(), Some("OPENAI_BASE_URL"));
    assert_eq!(option("--retries").default.as_deref(), Some("2"));
    for command in help("").commands {
        let text = crate::unbraid(&format!("{command} --help"), b"").stdout;
        for wrong in ["by default", "(default", "defaults to"] {
            assert!(!text.contains(wrong), "{command}: {wrong}: {text}");
        }
    }
    let mut command = Command::new(UNBRAID);
    let help = command
        .args(["chat", "--help"])
        .env("OPENAI_API_KEY", "sk-12345678");
    let help = Run::from(help.output().unwrap());
    assert!(!help.stdout.contains("sk-1234"), "{}", help.stdout);
}
