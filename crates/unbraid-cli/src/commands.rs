//! The command line: its subcommands, and the help that lists them.

#[cfg(feature = "chat")]
mod chat;
mod collect;
mod demo;
mod events;
mod generate;
#[cfg(not(all(feature = "chat", feature = "serve")))]
mod missing;
mod replay;
#[cfg(feature = "serve")]
mod serve;
mod split;
mod stats;
mod watch;

use clap::{Args as _, CommandFactory, FromArgMatches as _, Parser, Subcommand};

use self::{
    collect::CollectArgs, demo::DemoArgs, events::EventsArgs, generate::GenerateArgs,
    replay::ReplayArgs, split::SplitArgs, stats::StatsArgs, watch::WatchArgs,
};
use crate::{
    args::StreamArgs,
    exit::{Failure, Status},
};

/// Separates the answer stream of a language model into its choices, each with its own text and tool calls.
#[derive(Debug, Parser)]
#[command(name = "unbraid", version, after_help = EXIT_CODES, propagate_version = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    stream: StreamArgs,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Print the whole answer as one JSON object, in the shape of the non-streaming response
    #[command(after_help = collect::EXAMPLES)]
    Collect(CollectArgs),
    /// Print each event as one line of JSON, as it happens
    #[command(after_help = events::EXAMPLES)]
    Events(EventsArgs),
    /// Write a text file for each choice, a JSON file for each tool call, and summary.json
    #[command(after_help = split::EXAMPLES)]
    Split(SplitArgs),
    /// Show the choices as they stream, side by side on a terminal, and how each of them ended
    #[command(after_help = watch::EXAMPLES)]
    Watch(WatchArgs),
    /// Send a request to a provider, and show the answers as they stream
    #[cfg(feature = "chat")]
    #[command(after_help = chat::EXAMPLES)]
    Chat(Box<chat::ChatArgs>),
    /// Not in this build, which lacks the feature `chat`
    #[cfg(not(feature = "chat"))]
    #[command(disable_help_flag = true)]
    Chat(missing::MissingArgs),
    /// Show four answers to one question, streamed by a server in this process, without a key or a network
    #[command(after_help = demo::EXAMPLES)]
    Demo(DemoArgs),
    /// Show the times, tokens, calls and sizes of each choice
    #[command(after_help = stats::EXAMPLES)]
    Stats(StatsArgs),
    /// Serve recorded streams over HTTP, as their provider did, or record them from a provider first
    #[command(after_help = replay::EXAMPLES)]
    Replay(Box<ReplayArgs>),
    /// Serve an upstream to any OpenAI client, with a resumable, cancellable stream for each choice
    #[cfg(feature = "serve")]
    // The longer help, too, so that `--help` has a paragraph for each option.
    #[command(after_help = serve::EXAMPLES, after_long_help = serve::EXAMPLES)]
    Serve(Box<serve::ServeArgs>),
    /// Not in this build, which lacks the feature `serve`
    #[cfg(not(feature = "serve"))]
    #[command(disable_help_flag = true)]
    Serve(missing::MissingArgs),
    /// Print the man page, or the completion script for a shell
    // The first version had `completions SHELL`.
    #[command(alias = "completions", after_help = generate::EXAMPLES)]
    Generate(GenerateArgs),
}

impl Cli {
    /// Reads the arguments of this process; a wrong one ends it with a message.
    pub(crate) fn from_arguments() -> Self {
        let matches = Self::described().get_matches();
        Self::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
    }

    /// The command line, in which `serve` does not list the options that it refuses.
    fn described() -> clap::Command {
        let command = Self::command();
        if cfg!(not(feature = "serve")) {
            return command;
        }
        let shared = StreamArgs::augment_args(clap::Command::new("serve"));
        let hidden: Vec<_> = shared
            .get_arguments()
            .map(|arg| arg.clone().hide(true))
            .collect();
        command.mut_subcommand("serve", |serve| serve.args(hidden))
    }

    pub(crate) fn run(self) -> Result<Status, Failure> {
        let stream = &self.stream;
        match &self.command {
            Command::Collect(args) => collect::run(args, stream),
            Command::Events(args) => events::run(args, stream),
            Command::Split(args) => split::run(args, stream),
            Command::Watch(args) => watch::run(args, stream),
            #[cfg(feature = "chat")]
            Command::Chat(args) => chat::run(args, stream),
            #[cfg(not(feature = "chat"))]
            Command::Chat(_) => Err(Failure::missing("chat", "chat")),
            Command::Demo(args) => demo::run(args, stream),
            Command::Stats(args) => stats::run(args, stream),
            Command::Replay(args) => replay::run(args, stream),
            #[cfg(feature = "serve")]
            Command::Serve(args) => match stream.first_given() {
                // An option without an effect would look like a setting of the gateway.
                Some(option) => Err(Failure::Usage(format!("{option} has no effect on serve"))),
                None => serve::run(args),
            },
            #[cfg(not(feature = "serve"))]
            Command::Serve(_) => Err(Failure::missing("serve", "serve")),
            Command::Generate(args) => generate::run(args, Self::described()),
        }
    }
}

const EXIT_CODES: &str = "\
Exit codes:
  0  every choice finished
  1  the input could not be read, or held no choice
  2  the command line was invalid
  3  a choice did not finish, or chat received fewer choices than it requested
  4  chat --run-tool: the last answer that --max-turns allows has calls, which were not run

Examples:
  unbraid collect answer.sse
  curl -sN .. | unbraid events | jq -c .";
