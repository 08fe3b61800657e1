//! `unbraid generate`: prints the man page, or a completion script for a shell.

mod man;

use std::io::{self, Write};

use clap::ValueEnum;
use clap_complete::Shell;

use crate::exit::{Failure, Status, status_after_output};

pub(super) const EXAMPLES: &str = "\
Examples:
  unbraid generate man > unbraid.1
  unbraid generate bash > ~/.local/share/bash-completion/completions/unbraid
  unbraid generate fish > ~/.config/fish/completions/unbraid.fish
  unbraid generate zsh > \"${fpath[1]}/_unbraid\"";

#[derive(Debug, clap::Args)]
pub(super) struct GenerateArgs {
    /// The man page, or the shell of the script
    #[arg(value_enum, value_name = "WHAT")]
    target: Target,
}

/// What can be generated from the command line's definition.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Target {
    Man,
    Bash,
    Elvish,
    Fish,
    Powershell,
    Zsh,
}

impl Target {
    fn shell(self) -> Option<Shell> {
        match self {
            Self::Man => None,
            Self::Bash => Some(Shell::Bash),
            Self::Elvish => Some(Shell::Elvish),
            Self::Fish => Some(Shell::Fish),
            Self::Powershell => Some(Shell::PowerShell),
            Self::Zsh => Some(Shell::Zsh),
        }
    }
}

/// Prints the page or the script for this command line.
pub(super) fn run(args: &GenerateArgs, mut command: clap::Command) -> Result<Status, Failure> {
    // The generators of scripts panic if their writer fails, as it does when the reader of a pipe goes away. A buffer cannot
    // fail.
    let mut text = Vec::new();
    match args.target.shell() {
        Some(shell) => clap_complete::generate(shell, &mut command, "unbraid", &mut text),
        None => man::write(command, &mut text).map_err(Failure::Output)?,
    }
    let mut out = io::stdout().lock();
    let written = out.write_all(&text).and_then(|()| out.flush());
    status_after_output(written, Status::Finished)
}
