//! Signals: the first SIGTERM or SIGINT drains, the second exits at once, and SIGHUP reads the auth file again.

use std::io;

use unbraid_gateway::Gateway;

use super::warn;

#[cfg(unix)]
pub(super) struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
    hangup: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    pub(super) fn install() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};

        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for the first signal to stop.
    pub(super) async fn wait(mut self, gateway: Gateway) {
        loop {
            tokio::select! {
                _ = self.terminate.recv() => break,
                _ = self.interrupt.recv() => break,
                _ = self.hangup.recv() => reload(&gateway),
            }
        }
        tokio::spawn(async move {
            tokio::select! {
                _ = self.terminate.recv() => {}
                _ = self.interrupt.recv() => {}
            }
            std::process::exit(1);
        });
    }
}

#[cfg(not(unix))]
pub(super) struct Signals(tokio::sync::mpsc::UnboundedReceiver<()>);

#[cfg(not(unix))]
impl Signals {
    pub(super) fn install() -> io::Result<Self> {
        let (sender, receiver) = tokio::sync::mpsc::unbounded_channel();
        tokio::spawn(async move {
            while tokio::signal::ctrl_c().await.is_ok() && sender.send(()).is_ok() {}
        });
        Ok(Self(receiver))
    }

    /// Waits for the first Ctrl-C.
    pub(super) async fn wait(mut self, _gateway: Gateway) {
        self.0.recv().await;
        tokio::spawn(async move {
            self.0.recv().await;
            std::process::exit(1);
        });
    }
}

#[cfg_attr(not(unix), expect(dead_code, reason = "there is no SIGHUP"))]
fn reload(gateway: &Gateway) {
    if let Err(error) = gateway.reload_keys() {
        warn(&format!("the auth file was not read again: {error}"));
    }
}
