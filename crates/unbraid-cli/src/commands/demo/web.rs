//! `unbraid demo --web`: the invented model behind a gateway, whose page shows its answers.

use std::{io::Write, net::Ipv4Addr, sync::Arc, task::Poll, time::Duration};

use anstyle::Style;
use futures::future::maybe_done;
use tokio::{net::TcpListener, signal};
use unbraid_gateway::{Gateway, Server as GatewayServer};

use super::server::DemoHandler;
use crate::{
    exit::{Failure, Status},
    input::Playback,
    output::stdout,
    runtime::block_on,
    server::Server,
};

/// Serves the page until Ctrl-C.
pub(super) fn run(speed: f64) -> Result<Status, Failure> {
    block_on(async {
        let playback = Playback::new(speed);
        let model = Server::start(0, Arc::new(DemoHandler { playback })).await;
        let model = model.map_err(|error| Failure::Demo(error.into()))?;
        let gateway = Gateway::builder(format!("http://{}/v1", model.address()))
            // The model is in this process.
            .proxy_from_env(false)
            // Nobody reads on after Ctrl-C.
            .drain_timeout(Duration::ZERO)
            .build()
            .map_err(|error| Failure::Demo(error.into()))?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
        let listener = listener.map_err(|error| Failure::Demo(error.into()))?;
        let mut interrupted = Box::pin(maybe_done(signal::ctrl_c()));
        // The first poll installs the signal handler. It comes before the address is printed, because a caller may send the
        // signal as soon as it has read the address.
        let _installed: Poll<()> = futures::poll!(&mut interrupted);
        print_address(&listener)?;
        let served = GatewayServer::new(gateway)
            .serve(listener, interrupted)
            .await;
        served.map_err(|error| Failure::Demo(error.into()))?;
        Ok(Status::Finished)
    })
}

/// Prints the address alone in the first line, for programs.
fn print_address(listener: &TcpListener) -> Result<(), Failure> {
    let address = listener
        .local_addr()
        .map_err(|error| Failure::Demo(error.into()))?;
    let dimmed = Style::new().dimmed();
    let mut out = stdout();
    let printed = writeln!(
        out,
        "http://{address}/\n{dimmed}Open this page and send the question. Ctrl-C ends the demo.{dimmed:#}"
    );
    printed.and_then(|()| out.flush()).map_err(Failure::Output)
}
