//! `unbraid watch`: shows the choices as they stream, and how each of them ended.

use std::{
    io::{self, Read},
    path::Path,
    time::Duration,
};

use clap::ValueHint;
use tokio::io::AsyncRead;
use unbraid::Completions;
use unbraid_core::Demux;

use crate::{
    args::{self, DisplayArgs, PictureArgs, StreamArgs, UsageMode},
    exit::{Failure, Status},
    input::{HeadReader, Input, Listener, Playback, count_events, paced, read_all},
    interrupt::CancelOnInterrupt,
    live::{self, Picture, Shown},
    runtime::block_on,
};

pub(super) const EXAMPLES: &str = "\
Examples:
  curl -sN .. | unbraid watch
  unbraid watch --speed 20 answer.sse
  unbraid watch --speed 20 --svg answer.svg answer.sse
  NO_COLOR=1 unbraid watch answer.sse";

#[derive(Debug, clap::Args)]
pub(super) struct WatchArgs {
    /// Replay this many events per second; without it, events are shown as they arrive, and the view replays a file in
    /// about six seconds
    #[arg(long, value_name = "PER_SECOND", value_parser = args::events_per_second)]
    speed: Option<f64>,
    #[command(flatten)]
    display: DisplayArgs,
    #[command(flatten)]
    picture: PictureArgs,
    /// The recorded stream, or `-` for the standard input
    #[arg(default_value = "-", value_parser = args::input(), value_hint = ValueHint::FilePath)]
    file: Input,
}

pub(super) fn run(args: &WatchArgs, stream: &StreamArgs) -> Result<Status, Failure> {
    if let Some(file) = args.picture.file() {
        return write_picture(args, file, stream);
    }
    block_on(async {
        let (reader, head) = HeadReader::new(args.file.open_async()?);
        let has_keys = !args.file.is_terminal();
        let opens = live::can_open(args.display, has_keys);
        let speed = match args.speed {
            None if opens => default_speed(&args.file),
            speed => speed,
        };
        let playback = Playback::new(1.0);
        let completions = completions(reader, stream, speed, &playback);
        let _guard = CancelOnInterrupt::new(&completions).await;
        let title = args.file.to_string();
        let summary = if opens {
            let shown = Shown {
                title: &title,
                playback: speed.map(|_| playback),
                ..Shown::default()
            };
            live::show_view(&completions, args.display, shown).await
        } else {
            let shown = Shown {
                title: &title,
                ..Shown::default()
            };
            live::show(&completions, args.display, shown, has_keys).await
        };
        let summary = summary.map_err(Failure::Output)?;
        Ok(summary.outcome(&head.bytes()).print_diagnostics(&args.file))
    })
}

/// The speed at which the view replays a recording: all of it in six seconds, but no slower than somebody can follow.
///
/// There is none for a pipe or a device, which has its own, and for a recording that is too long to be counted first.
fn default_speed(input: &Input) -> Option<f64> {
    const SECONDS: f64 = 6.0;
    const MIN_PER_SECOND: f64 = 20.0;
    const MAX_BYTES: u64 = 16 * 1024 * 1024;
    if input.path().is_none() || input.is_live() {
        return None;
    }
    // Decompressed, as it will be replayed. What precedes damage is replayed, too.
    let mut bytes = Vec::new();
    let mut limited = input.open().ok()?.take(MAX_BYTES + 1);
    let _damaged: io::Result<usize> = limited.read_to_end(&mut bytes);
    if bytes.len() as u64 > MAX_BYTES {
        return None;
    }
    let events = count_events(&bytes);
    let events = f64::from(u32::try_from(events).unwrap_or(u32::MAX));
    Some((events / SECONDS).max(MIN_PER_SECOND))
}

fn completions(
    input: impl AsyncRead + Send + Unpin + 'static,
    stream: &StreamArgs,
    speed: Option<f64>,
    playback: &Playback,
) -> Completions {
    let builder = stream.builder(UsageMode::Estimate);
    match speed {
        Some(speed) => builder.from_byte_stream(paced(input, speed, playback.clone())),
        None => builder.from_reader(input),
    }
}

/// Reads the whole stream, and writes its picture. With a speed, its times are those of a replay.
fn write_picture(args: &WatchArgs, file: &Path, stream: &StreamArgs) -> Result<Status, Failure> {
    let mut drawer = Drawer {
        picture: Picture::new(&args.file.to_string()),
        speed: args.speed,
    };
    let input = args.file.open()?;
    let result = read_all(&args.file, input, stream.config(), &mut drawer);
    let result = result.map_err(Failure::Output)?;
    drawer.picture.write(file)?;
    Ok(result.outcome().print_diagnostics(&args.file))
}

/// Draws the events of a stream while it is read.
struct Drawer {
    picture: Picture,
    speed: Option<f64>,
}

impl Listener for Drawer {
    fn handle_events(&mut self, demux: &mut Demux) -> io::Result<()> {
        let speed = self.speed;
        self.picture.add_events(demux, |event| {
            let seconds = speed.map_or(0.0, |speed| event as f64 / speed);
            Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
        });
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
