//! A socket whose peer must accept data within a deadline.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{activity::Activity, guarded_io::Deadline, kill};

/// Fails writes once the socket has accepted nothing for too long.
pub(super) struct GuardedWrites<S> {
    socket: S,
    stall: Duration,
    activity: Arc<Activity>,
    deadline: Deadline,
}

impl<S> GuardedWrites<S> {
    pub(super) fn new(socket: S, stall: Duration, activity: Arc<Activity>) -> Self {
        Self {
            socket,
            stall,
            activity,
            deadline: Deadline::default(),
        }
    }

    /// Bounds how long writing may be pending.
    fn guard<T>(
        &mut self,
        cx: &mut Context<'_>,
        polled: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            if self.deadline.is_set() {
                self.deadline.clear();
                self.activity.set_blocked(false);
            }
            return polled;
        }
        if !self.deadline.is_set() {
            self.deadline.set(self.stall);
            self.activity.set_blocked(true);
        }
        let error = ready!(self.deadline.check(cx));
        // The bodies of this connection see by the switch that their reader was slow, and did not leave.
        kill::switch_off();
        Poll::Ready(Err(error))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for GuardedWrites<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for GuardedWrites<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.socket).poll_write(cx, buf);
        if let Poll::Ready(Ok(_)) = polled {
            self.activity.has_written();
        }
        self.guard(cx, polled)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Not guarded: a socket has nothing to flush, so it is ready even if it accepts nothing, and that must not clear
        // the deadline.
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.socket).poll_shutdown(cx);
        self.guard(cx, polled)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rustls::{
        ClientConfig, RootCertStore, ServerConfig,
        crypto::ring,
        pki_types::{PrivatePkcs8KeyDer, ServerName},
    };
    use tokio::{
        io::{AsyncWriteExt, duplex},
        time::{Instant, sleep, timeout},
    };
    use tokio_rustls::{TlsAcceptor, TlsConnector};

    use super::*;

    const STALL: Duration = Duration::from_secs(30);

    fn tls() -> (TlsAcceptor, TlsConnector) {
        let certified = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
        let certificate = certified.cert.der().clone();
        let key = PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der());
        let provider = Arc::new(ring::default_provider());
        let server = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.clone()], key.into())
            .unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(certificate).unwrap();
        let client = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        (Arc::new(server).into(), Arc::new(client).into())
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_accepts_nothing_is_disconnected_although_tls_buffers_small_writes() {
        let (near, far) = duplex(4096);
        let (acceptor, connector) = tls();
        let name = ServerName::try_from("localhost").unwrap();
        let accepted = acceptor.accept(GuardedWrites::new(near, STALL, Arc::default()));
        let (accepted, connected) = tokio::join!(accepted, connector.connect(name, far));
        let (mut server, _silent) = (accepted.unwrap(), connected.unwrap());
        let started = Instant::now();
        // A delta of 100 bytes each second: TLS has room for ten minutes of them.
        loop {
            if server.write_all(&[0; 100]).await.is_err() {
                break;
            }
            match timeout(Duration::from_secs(1), server.flush()).await {
                Ok(Err(_)) => break,
                Ok(Ok(())) => sleep(Duration::from_secs(1)).await,
                Err(_elapsed) => {}
            }
            assert!(started.elapsed() < 4 * STALL, "the peer is kept");
        }
        assert!(started.elapsed() >= STALL);
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_that_stalls_switches_its_connection_off() {
        let (socket, peer) = duplex(1);
        let mut socket = GuardedWrites::new(socket, STALL, Arc::default());
        let stalled = kill::with_switch(async {
            let error = socket.write_all(b"long").await.unwrap_err();
            (error.kind(), kill::current().unwrap().is_cancelled())
        });
        assert_eq!(stalled.await, (io::ErrorKind::TimedOut, true));
        drop(peer);
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_accepts_data_again_is_kept() {
        use tokio::io::AsyncReadExt;

        let (near, mut far) = duplex(16);
        let mut socket = GuardedWrites::new(near, STALL, Arc::default());
        let reads = async {
            let mut bytes = [0; 16];
            for _ in 0..8 {
                sleep(STALL * 3 / 4).await;
                far.read_exact(&mut bytes).await.unwrap();
            }
        };
        let (written, ()) = tokio::join!(socket.write_all(&[0; 128]), reads);
        written.unwrap();
        let failed = socket.write_all(&[0; 64]).await.unwrap_err();
        assert_eq!(failed.kind(), io::ErrorKind::TimedOut);
    }
}
