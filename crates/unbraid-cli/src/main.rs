//! The command `unbraid`: separates the answer stream of a language model, recorded or live, into its choices.
//!
//! The modules form layers, from the top down, and none imports from a module above it:
//!
//! - `commands`: the command line, and one module for each subcommand;
//! - `interrupt`: Ctrl-C while an answer is shown, which also closes the live view;
//! - `live`, `lines`, `event_lines`, `native`, `report`, `text`: the output formats;
//! - `args`, `exchange`, `input`, `labels`, `outcome`, `runtime`, `server`, `usage`: what several subcommands share;
//! - `exit`, `json`, `output`, `palette`, `printable`: exit codes, JSON text, the standard streams, colours and safe text.
//!
//! A subcommand that processes a whole stream reads its input through a [`Demux`](unbraid_core::Demux). One that shows a
//! stream live uses the actors of [`unbraid`].

#![cfg_attr(
    not(feature = "chat"),
    expect(
        dead_code,
        reason = "some functions of the shared modules are for `chat` alone"
    )
)]

mod args;
mod commands;
mod event_lines;
mod exchange;
mod exit;
mod input;
mod interrupt;
mod json;
mod labels;
mod lines;
mod live;
mod native;
mod outcome;
mod output;
mod palette;
mod printable;
mod report;
mod runtime;
mod server;
mod text;
mod usage;

use std::process::ExitCode;

fn main() -> ExitCode {
    exit::code(commands::Cli::from_arguments().run())
}
