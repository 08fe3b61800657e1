//! `unbraid demo`: four answers to one question over real HTTP, without a key or a network.

mod client;
mod scenario;
mod server;

use std::{
    io::{self, Write},
    ops::RangeInclusive,
    sync::Arc,
};

use anstyle::Style;

use self::{scenario::MIN_SPEED, server::DemoHandler};
use crate::{
    args::{DisplayArgs, StreamArgs, number},
    exit::{Failure, Status},
    interrupt::CancelOnInterrupt,
    live,
    output::stdout,
    runtime::block_on,
    server::Server,
};

pub(super) const EXAMPLES: &str = "\
Examples:
  unbraid demo
  unbraid demo --speed 0.5";

#[derive(Debug, clap::Args)]
pub(super) struct DemoArgs {
    /// Run this many times as fast
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = speed)]
    speed: f64,
    #[command(flatten)]
    display: DisplayArgs,
}

fn speed(text: &str) -> Result<f64, String> {
    const SPEEDS: RangeInclusive<f64> = MIN_SPEED..=1_000.0;
    number(text, SPEEDS)
}

pub(super) fn run(args: &DemoArgs, stream: &StreamArgs) -> Result<Status, Failure> {
    block_on(async {
        let handler = Arc::new(DemoHandler { speed: args.speed });
        let server = Server::start(0, handler).await;
        let server = server.map_err(|error| Failure::Demo(error.into()))?;
        print_introduction(&mut stdout(), &server).map_err(Failure::Output)?;
        let completions = client::send(server.address(), stream.builder()).await;
        let completions = completions.map_err(Failure::Demo)?;
        let _guard = CancelOnInterrupt::new(&completions).await;
        let summary = live::show(&completions, args.display, scenario::QUESTION, true).await;
        let summary = summary.map_err(Failure::Output)?;
        print_next_step(&mut stdout()).map_err(Failure::Output)?;
        Ok(summary.outcome(&[]).print_diagnostics(&"demo"))
    })
}

fn print_introduction(out: &mut impl Write, server: &Server) -> io::Result<()> {
    let (bold, dimmed) = (Style::new().bold(), Style::new().dimmed());
    let (question, n, address) = (scenario::QUESTION, scenario::CHOICES, server.address());
    writeln!(out, "{bold}{question}{bold:#}")?;
    writeln!(
        out,
        "{dimmed}{n} answers in one stream from http://{address}, an invented model in this process{dimmed:#}\n"
    )?;
    out.flush()
}

fn print_next_step(out: &mut impl Write) -> io::Result<()> {
    let dimmed = Style::new().dimmed();
    writeln!(
        out,
        "\n{dimmed}Next, with a stream of your own: curl -sN .. | unbraid watch{dimmed:#}"
    )?;
    out.flush()
}
