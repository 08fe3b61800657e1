//! Kills gateways and brokers while clients read, and checks what each client received:
//! `cargo run --profile adversarial -p unbraid-adversarial --bin chaos -- --log redis --kills 1000 --seed 1`.
//!
//! The gateways are the command `unbraid`. Without `--unbraid PATH`, cargo builds it in the profile of this program if cargo
//! started the program, and otherwise it is the file `unbraid` beside the program. Exit codes: 0 if no rule was broken, 1 if one
//! was, 2 for an invalid command line, 3 if the run is not possible on this machine.

use std::process::ExitCode;

#[cfg(unix)]
mod unix {
    use std::{
        env, io,
        io::Write,
        path::{Path, PathBuf},
        process::{Command, ExitCode},
        time::Duration,
    };

    use clap::{Parser, ValueEnum};
    use tokio::signal::unix::{SignalKind, signal};
    use unbraid_adversarial::chaos::{self, LogKind, Options, Plan};

    /// Kills gateways and brokers while clients read, and checks what each client received.
    #[derive(Debug, Parser)]
    struct Args {
        /// Where the gateways keep their streams
        #[arg(long, value_enum)]
        log: Log,
        /// How many processes are killed
        #[arg(long, default_value_t = 100)]
        kills: usize,
        /// What decides the faults and their times
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Begin with this round of the seed, such as one that broke a rule, and not with the first
        #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
        round: u64,
        /// How many clients read at once
        #[arg(long, default_value_t = 200)]
        clients: usize,
        /// The lease of the gateways, in seconds
        #[arg(long, default_value_t = 5)]
        lease: u64,
        /// Begin no further round after so many seconds
        #[arg(long, default_value_t = 86_400)]
        seconds: u64,
        /// Drain and restart each gateway, in place of faults
        #[arg(long)]
        rolling: bool,
        /// The program of the gateways
        #[arg(long)]
        unbraid: Option<PathBuf>,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    }

    #[derive(Debug, Clone, Copy, ValueEnum)]
    enum Log {
        Memory,
        File,
        Redis,
        Nats,
    }

    const CANNOT_RUN: u8 = 3;

    pub(super) fn main() -> ExitCode {
        let args = Args::parse();
        match run(&args) {
            Ok(true) => ExitCode::SUCCESS,
            Ok(false) => ExitCode::FAILURE,
            Err(error) => {
                // There is no other place for it.
                let _written = writeln!(io::stderr(), "chaos: cannot run: {error}");
                ExitCode::from(CANNOT_RUN)
            }
        }
    }

    fn run(args: &Args) -> Result<bool, Box<dyn std::error::Error>> {
        let options = Options {
            log: match args.log {
                Log::Memory => LogKind::Memory,
                Log::File => LogKind::File,
                Log::Redis => LogKind::Redis,
                Log::Nats => LogKind::Nats,
            },
            plan: if args.rolling {
                Plan::Rolling
            } else {
                Plan::Chaos
            },
            kills: args.kills,
            seed: args.seed,
            first_round: args.round,
            clients: args.clients.max(1),
            lease: Duration::from_secs(args.lease.max(1)),
            time: Duration::from_secs(args.seconds),
            unbraid: find_unbraid(args.unbraid.as_deref())?,
        };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()?;
        let summary = runtime.block_on(async {
            let run = chaos::run(options, |line| {
                let _written = writeln!(io::stderr(), "{line}");
            });
            tokio::select! {
                summary = Box::pin(run) => Ok(summary?),
                // Everything that was started ends when it is dropped.
                () = interrupted() => Err(Box::<dyn std::error::Error>::from("interrupted")),
            }
        })?;
        match args.json {
            true => writeln!(io::stdout(), "{:#}", summary.json())?,
            false => write!(io::stdout(), "{summary}")?,
        }
        Ok(summary.is_clean())
    }

    /// Waits for a signal that asks this program to end.
    async fn interrupted() {
        let mut signals: Vec<_> = [
            SignalKind::interrupt(),
            SignalKind::terminate(),
            SignalKind::hangup(),
        ]
        .into_iter()
        .filter_map(|kind| signal(kind).ok())
        .collect();
        let received = signals.iter_mut().map(|signal| Box::pin(signal.recv()));
        let _first = futures::future::select_all(received).await;
    }

    fn find_unbraid(given: Option<&Path>) -> Result<PathBuf, Box<dyn std::error::Error>> {
        if let Some(path) = given {
            return Ok(path.to_owned());
        }
        let program = env::current_exe()?;
        let folder = program.parent().ok_or("this program is in no folder")?;
        if let Some(cargo) = env::var_os("CARGO") {
            let name = folder
                .file_name()
                .and_then(|name| name.to_str())
                .unwrap_or_default();
            let profile = if name == "debug" { "dev" } else { name };
            let status = Command::new(cargo)
                .args(["build", "-p", "unbraid-cli", "--profile", profile])
                .status()?;
            if !status.success() {
                return Err("the command unbraid could not be built".into());
            }
        }
        let path = folder.join("unbraid");
        match path.is_file() {
            true => Ok(path),
            false => Err(
                "there is no command unbraid beside this program: give its path with --unbraid"
                    .into(),
            ),
        }
    }
}

#[cfg(unix)]
fn main() -> ExitCode {
    unix::main()
}

#[cfg(not(unix))]
fn main() -> ExitCode {
    // Signals suspend and continue processes.
    ExitCode::from(3)
}
