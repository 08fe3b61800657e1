//! `unbraid demo`: four answers to one question, over real HTTP, with neither a key nor a network.

mod client;
mod scenario;
mod server;

use std::{
    io::{self, Write},
    sync::Arc,
};

use anstyle::Style;

use self::server::Scenario;
use crate::{
    args::Reading,
    exit::{self, Failure, Status},
    live::{self, Display},
    serve::Server,
    watch::{Interrupt, block_on, stdout},
};

/// Shows the demo, so many times as fast as it was written.
pub(crate) fn run(reading: &Reading, speed: f64, display: Display) -> Result<Status, Failure> {
    block_on(async {
        let server = Server::start(0, Arc::new(Scenario { speed }))
            .await
            .map_err(demo)?;
        introduce(&mut stdout(), &server).map_err(Failure::Output)?;
        let completions = client::ask(server.address(), reading.builder()).await;
        let completions = completions.map_err(Failure::Demo)?;
        let _interrupt = Interrupt::cancels(&completions).await;
        let shown = live::show(&completions, display, scenario::QUESTION, true).await;
        let shown = shown.map_err(Failure::Output)?;
        suggest(&mut stdout()).map_err(Failure::Output)?;
        Ok(exit::tell(&"demo", &shown.outcome(&[])))
    })
}

fn demo(error: io::Error) -> Failure {
    Failure::Demo(error.into())
}

fn introduce(out: &mut impl Write, server: &Server) -> io::Result<()> {
    let (bold, dimmed) = (Style::new().bold(), Style::new().dimmed());
    let (question, n, address) = (scenario::QUESTION, scenario::CHOICES, server.address());
    writeln!(out, "{bold}{question}{bold:#}")?;
    writeln!(
        out,
        "{dimmed}{n} answers in one stream from http://{address}, an invented model in this process{dimmed:#}\n"
    )?;
    out.flush()
}

fn suggest(out: &mut impl Write) -> io::Result<()> {
    let dimmed = Style::new().dimmed();
    writeln!(
        out,
        "\n{dimmed}Next, with a stream of your own: curl -sN .. | unbraid watch{dimmed:#}"
    )?;
    out.flush()
}
