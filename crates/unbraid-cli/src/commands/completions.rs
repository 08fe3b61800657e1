//! `unbraid completions`: prints a completion script for a shell.

use std::io::{self, Write};

use clap_complete::{Shell, generate};

use crate::exit::{Failure, Status, status_after_output};

pub(super) const EXAMPLES: &str = "\
Examples:
  unbraid completions bash > ~/.local/share/bash-completion/completions/unbraid
  unbraid completions fish > ~/.config/fish/completions/unbraid.fish
  unbraid completions zsh > \"${fpath[1]}/_unbraid\"";

#[derive(Debug, clap::Args)]
pub(super) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

/// Prints the script for this command line.
pub(super) fn run(args: &CompletionsArgs, command: &mut clap::Command) -> Result<Status, Failure> {
    // `generate` panics if its writer fails, as it does when the reader of a pipe goes away. A buffer cannot fail.
    let mut script = Vec::new();
    generate(args.shell, command, "unbraid", &mut script);
    let mut out = io::stdout().lock();
    let written = out.write_all(&script).and_then(|()| out.flush());
    status_after_output(written, Status::Finished)
}
