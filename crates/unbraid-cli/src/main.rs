//! The command `unbraid`: separates the answer stream of a language model, recorded or live, into its choices.
//!
//! Each module imports only from the layers below its own:
//!
//! 1. `commands`: the command line, and one module for each subcommand.
//! 2. `interrupt`, `live`, `lines`, `event_lines`, `report`: the output formats, and Ctrl-C.
//! 3. `args`, `input`, `outcome`, `runtime`, `server`: what several subcommands share.
//! 4. `exit`, `output`, `json`, `printable`: exit codes, the standard streams and text.
//!
//! A subcommand that processes a whole stream reads its input through a [`Demux`](unbraid_core::Demux). One that shows a
//! stream live uses the actors of [`unbraid`].

mod args;
mod commands;
mod event_lines;
mod exit;
mod input;
mod interrupt;
mod json;
mod lines;
mod live;
mod outcome;
mod output;
mod printable;
mod report;
mod runtime;
mod server;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    exit::code(commands::Cli::parse().run())
}
