//! `unbraid demo`: four answers to one question over real HTTP, without a key or a network.

mod client;
mod scenario;
mod server;
#[cfg(feature = "serve")]
mod web;

use std::{
    io::{self, Write},
    ops::RangeInclusive,
    path::Path,
    sync::Arc,
};

use anstyle::Style;

use self::{scenario::MIN_SPEED, server::DemoHandler};
use unbraid_core::Demux;

use crate::{
    args::{DisplayArgs, PictureArgs, StreamArgs, UsageMode, number},
    exit::{Failure, Status},
    input::Playback,
    interrupt::CancelOnInterrupt,
    live::{self, Picture, Shown},
    output::stdout,
    runtime::block_on,
    server::Server,
};

pub(super) const EXAMPLES: &str = "\
Examples:
  unbraid demo
  unbraid demo --speed 0.5
  unbraid demo --svg braid.svg
  unbraid demo --web";

#[derive(Debug, clap::Args)]
pub(super) struct DemoArgs {
    /// Run this many times as fast
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = speed)]
    speed: f64,
    /// Show the answers in a browser: serve a page that asks for them, and print its address
    #[arg(long, conflicts_with_all = ["plain", "stay", "svg"])]
    web: bool,
    #[command(flatten)]
    display: DisplayArgs,
    #[command(flatten)]
    picture: PictureArgs,
}

/// The lines below the picture: an empty one and the next step.
const LINES_BELOW: u16 = 2;

fn speed(text: &str) -> Result<f64, String> {
    const SPEEDS: RangeInclusive<f64> = MIN_SPEED..=1_000.0;
    number(text, SPEEDS)
}

pub(super) fn run(args: &DemoArgs, stream: &StreamArgs) -> Result<Status, Failure> {
    if let Some(file) = args.picture.file() {
        return write_picture(file, args.speed, stream);
    }
    if args.web {
        #[cfg(feature = "serve")]
        return web::run(args.speed);
        #[cfg(not(feature = "serve"))]
        return Err(Failure::missing("demo --web", "serve"));
    }
    block_on(async {
        let playback = Playback::new(args.speed);
        let handler = Arc::new(DemoHandler {
            playback: playback.clone(),
        });
        let server = Server::start(0, handler).await;
        let server = server.map_err(|error| Failure::Demo(error.into()))?;
        print_introduction(&mut stdout(), &server).map_err(Failure::Output)?;
        let completions = client::send(server.address(), stream.builder(UsageMode::Estimate)).await;
        let completions = completions.map_err(Failure::Demo)?;
        let _guard = CancelOnInterrupt::new(&completions).await;
        let summary = if live::can_open(args.display, true) {
            let shown = Shown {
                title: scenario::QUESTION,
                playback: Some(playback),
                lines_below: Some(LINES_BELOW),
                ..Shown::default()
            };
            live::show_view(&completions, args.display, shown).await
        } else {
            let shown = Shown {
                title: scenario::QUESTION,
                ..Shown::default()
            };
            live::show(&completions, args.display, shown, true).await
        };
        let summary = summary.map_err(Failure::Output)?;
        print_next_step(&mut stdout()).map_err(Failure::Output)?;
        Ok(summary.outcome(&[]).print_diagnostics(&"demo"))
    })
}

/// Writes the picture at the end of the demo. Its times are those of the scenario, so it is always the same.
fn write_picture(file: &Path, speed: f64, stream: &StreamArgs) -> Result<Status, Failure> {
    let mut demux = Demux::new(stream.config());
    let mut picture = Picture::new(scenario::QUESTION);
    for event in scenario::events(scenario::CHOICES) {
        demux.feed(event.data.as_bytes());
        picture.add_events(&mut demux, |_| event.time.div_f64(speed));
    }
    picture.write(file)?;
    Ok(Status::Finished)
}

fn print_introduction(out: &mut impl Write, server: &Server) -> io::Result<()> {
    let (bold, dimmed) = (Style::new().bold(), Style::new().dimmed());
    let (question, n, address) = (scenario::QUESTION, scenario::CHOICES, server.address());
    writeln!(out, "{bold}{question}{bold:#}")?;
    writeln!(
        out,
        "{dimmed}{n} answers in one stream, invented by a server at http://{address}{dimmed:#}\n"
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
