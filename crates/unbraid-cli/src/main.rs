//! The command `unbraid`: takes a recorded or live answer stream of a language model apart at the terminal.
//!
//! A command that makes something of a whole stream reads its input through a [`Demux`](unbraid_core::Demux); one that
//! shows it live uses the actors of [`unbraid`]. Both print what came, and exit by [`exit`]'s codes.

mod account;
mod args;
mod chat;
mod collect;
mod completions;
mod demo;
mod events;
mod exit;
mod indent;
mod input;
mod json_text;
mod live;
mod pretty;
mod printable;
mod read;
mod replay;
mod serve;
mod split;
mod watch;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Args, Command};

fn main() -> ExitCode {
    let Args { reading, command } = Args::parse();
    let options = reading.options();
    let status = match command {
        Command::Collect { request, file } => collect::run(&file, request.as_deref(), options),
        Command::Events { file } => events::run(&file, options),
        Command::Split { out, file } => split::run(&file, &out, options),
        Command::Watch {
            speed,
            display,
            file,
        } => watch::run(&file, &reading, speed, display),
        Command::Chat(chat) => chat::run(&chat, &reading),
        Command::Demo { speed, display } => demo::run(&reading, speed, display),
        Command::Replay { manner, file } => replay::run(&file, &reading, manner),
        Command::Completions { shell } => completions::run(shell),
    };
    exit::code(status)
}
