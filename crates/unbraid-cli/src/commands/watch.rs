//! `unbraid watch`: shows the choices as they stream, and how each of them ended.

use clap::ValueHint;
use tokio::io::AsyncRead;
use unbraid::Completions;

use crate::{
    args::{self, DisplayArgs, StreamArgs},
    exit::{Failure, Status},
    input::{HeadReader, Input, paced},
    interrupt::CancelOnInterrupt,
    live,
    runtime::block_on,
};

pub(super) const EXAMPLES: &str = "\
Examples:
  curl -sN .. | unbraid watch
  unbraid watch --speed 20 answer.sse
  NO_COLOR=1 unbraid watch answer.sse";

#[derive(Debug, clap::Args)]
pub(super) struct WatchArgs {
    /// Replay this many events per second; without it, events are shown as fast as they arrive
    #[arg(long, value_name = "PER_SECOND", value_parser = args::events_per_second)]
    speed: Option<f64>,
    #[command(flatten)]
    display: DisplayArgs,
    /// The recorded stream, or `-` for the standard input
    #[arg(default_value = "-", value_parser = args::input(), value_hint = ValueHint::FilePath)]
    file: Input,
}

pub(super) fn run(args: &WatchArgs, stream: &StreamArgs) -> Result<Status, Failure> {
    block_on(async {
        let (reader, head) = HeadReader::new(args.file.open_async()?);
        let completions = completions(reader, stream, args.speed);
        let _guard = CancelOnInterrupt::new(&completions).await;
        let title = args.file.to_string();
        let has_keys = !args.file.is_terminal();
        let summary = live::show(&completions, args.display, &title, has_keys).await;
        let summary = summary.map_err(Failure::Output)?;
        Ok(summary.outcome(&head.bytes()).print_diagnostics(&args.file))
    })
}

fn completions(
    input: impl AsyncRead + Send + Unpin + 'static,
    stream: &StreamArgs,
    speed: Option<f64>,
) -> Completions {
    let builder = stream.builder();
    match speed {
        Some(speed) => builder.from_byte_stream(paced(input, speed)),
        None => builder.from_reader(input),
    }
}
