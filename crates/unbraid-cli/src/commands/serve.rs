//! `unbraid serve`: the gateway, as a server of its own.

mod args;
mod log;
mod signals;
mod values;

use std::{
    fs, io,
    net::{SocketAddr, ToSocketAddrs},
    num::NonZero,
    path::Path,
    thread::available_parallelism,
};

use tokio::{net::TcpListener, runtime::Builder};
use tracing::Level;
use tracing_subscriber::{filter::Targets, layer::SubscriberExt, util::SubscriberInitExt};
use unbraid_gateway::{BuildError, Gateway, GatewayBuilder, NewKey, Server};

pub(super) use self::args::ServeArgs;
use self::{log::LogKind, signals::Signals};
use crate::{
    exit::{Failure, Status},
    output::{print_error, print_line},
    printable::printable,
};

pub(super) const EXAMPLES: &str = "\
Examples:
  unbraid serve --upstream http://127.0.0.1:8000/v1
  unbraid serve --upstream https://api.openai.com/v1 --upstream-key-file key.txt
  unbraid serve --new-key alice    # prints a key, and the line to add to the file of keys
  unbraid serve --upstream http://127.0.0.1:8000/v1 --auth-file keys --listen 0.0.0.0:8080

Exit codes:
  0  a clean shutdown
  1  the address cannot be listened on, a file cannot be read, or the log cannot be used
  2  the command line was invalid";

pub(super) fn run(args: &ServeArgs) -> Result<Status, Failure> {
    if let Some(name) = args.new_key() {
        return print_new_key(name);
    }
    let address = args.listen_address()?;
    args.check_authentication(address)?;
    let log = args.log()?;
    let builder = builder(args, address)?;
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(io::stderr)
        .with_ansi(false);
    // The client of NATS would write a line for each attempt to connect, several in a second. The gateway has lines of its own.
    let levels = Targets::new()
        .with_default(Level::INFO)
        .with_target("async_nats", Level::WARN);
    tracing_subscriber::registry()
        .with(lines)
        .with(levels)
        .init();
    let runtime = Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(Failure::Runtime)?;
    let served = runtime.block_on(serve(args, address, &log, builder));
    // The drain has ended, and what still decodes an answer for a reader must not outlast it.
    runtime.shutdown_background();
    served
}

async fn serve(
    args: &ServeArgs,
    address: SocketAddr,
    log: &LogKind,
    mut builder: GatewayBuilder,
) -> Result<Status, Failure> {
    let log = log::connect(log, args.log_options()).await?;
    if let Some(store) = log.store() {
        builder = builder.log(store);
    }
    let gateway = builder.build().map_err(failure)?;
    let cores = available_parallelism().unwrap_or(NonZero::<usize>::MIN);
    let mut server = Server::new(gateway.clone()).workers(cores);
    let mut scheme = "http";
    if let Some((certificate, key)) = args.tls() {
        server = server.tls(certificate, key).map_err(failure)?;
        scheme = "https";
    }
    let listener = listen(address).await?;
    let _metrics = match args.metrics_address()? {
        Some(address) => Some(serve_metrics(&gateway, address).await?),
        None => None,
    };
    // The handlers are installed before the address is printed, because a caller may send a signal as soon as it has read
    // the address.
    let signals = Signals::install().map_err(Failure::Runtime)?;
    let local = listener.local_addr().map_err(Failure::Output)?;
    print_line(format_args!("{scheme}://{local}/")).map_err(Failure::Output)?;
    let stopped = signals.wait(gateway);
    let served = server.serve(listener, stopped).await;
    log.close().await;
    served.map_err(Failure::Runtime)?;
    Ok(Status::Finished)
}

async fn listen(address: SocketAddr) -> Result<TcpListener, Failure> {
    let listener = TcpListener::bind(address).await;
    listener.map_err(|error| Failure::Request(format!("{address}: {error}")))
}

/// Serves the metrics on a socket of their own, until the handle is dropped.
async fn serve_metrics(gateway: &Gateway, address: SocketAddr) -> Result<AbortOnDrop, Failure> {
    let listener = listen(address).await?;
    let local = listener.local_addr().map_err(Failure::Output)?;
    // Port 0 stands for any, and the standard output is for the main address.
    tracing::info!("metrics: http://{local}/metrics");
    let server = Server::new(gateway.clone()).metrics_only();
    let served = tokio::spawn(server.serve(listener, std::future::pending()));
    Ok(AbortOnDrop(served.abort_handle()))
}

#[derive(Debug)]
struct AbortOnDrop(tokio::task::AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn builder(args: &ServeArgs, address: SocketAddr) -> Result<GatewayBuilder, Failure> {
    let Some(upstream) = &args.upstream else {
        return Err(Failure::Usage("serve needs --upstream".into()));
    };
    let mut builder = args.configure(Gateway::builder(upstream));
    if !address.ip().is_loopback() {
        builder = builder.any_address();
    }
    let secret = |file: Option<&Path>, variable| match file {
        Some(path) => read_secret(path).map(Some),
        None => Ok(std::env::var(variable)
            .ok()
            .filter(|text| !text.trim().is_empty())),
    };
    if let Some(key) = secret(args.upstream_key_file.as_deref(), "UNBRAID_UPSTREAM_KEY")? {
        builder = builder.upstream_key(key);
    }
    if let Some(secret) = secret(args.link_secret_file.as_deref(), "UNBRAID_LINK_SECRET")? {
        builder = builder.link_secret(secret.trim());
    }
    Ok(builder)
}

fn read_secret(path: &Path) -> Result<String, Failure> {
    let failure = |error| Failure::File {
        path: path.to_owned(),
        error,
    };
    let text = fs::read_to_string(path).map_err(failure)?;
    if text.trim().is_empty() {
        // Perhaps a mount or a template has failed. Without the secret, the gateway would do something else.
        let error = io::Error::new(io::ErrorKind::InvalidData, "the file is empty");
        return Err(failure(error));
    }
    Ok(text)
}

fn print_new_key(name: &str) -> Result<Status, Failure> {
    let key = NewKey::generate(name).map_err(failure)?;
    // The key is for its owner. It is on a line of its own, because a file of keys needs no more than their hashes.
    print_line(format_args!("# key of {}: {}", printable(name), key.key()))
        .map_err(Failure::Output)?;
    print_line(format_args!("{}", key.line())).map_err(Failure::Output)?;
    Ok(Status::Finished)
}

/// An invalid option is an error of the command line; a file that cannot be read is not.
fn failure(error: BuildError) -> Failure {
    match error {
        BuildError::File { path, error } => Failure::File { path, error },
        BuildError::AuthFile { .. }
        | BuildError::SharedKey { .. }
        | BuildError::Tls { .. }
        | BuildError::Random => Failure::Request(printable(&error.to_string())),
        error => Failure::Usage(printable(&error.to_string())),
    }
}

/// Resolves `host:port`.
fn resolve(text: &str) -> Result<SocketAddr, Failure> {
    let addresses = text
        .to_socket_addrs()
        .map_err(|error| Failure::Usage(format!("{} is not an address: {error}", printable(text))));
    let mut addresses = addresses?;
    addresses
        .next()
        .ok_or_else(|| Failure::Usage(format!("{} has no address", printable(text))))
}

/// Reports a problem that does not end the server.
fn warn(message: &str) {
    print_error(format_args!("unbraid: {message}"));
}
