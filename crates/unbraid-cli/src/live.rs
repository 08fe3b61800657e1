//! The live view: shows a completion in columns while it streams, if the standard output is a terminal.
//!
//! Commands call only [`show()`] and [`Picture`]. The [`view`] is a function of events, keys and times, and the loop of
//! the [`session`] supplies all three, so that tests can draw it without a terminal.

mod event_log;
mod fit;
mod grid;
mod highlight;
mod pane;
mod print;
mod rate;
mod screen;
mod session;
mod strip;
mod style;
mod svg;
mod text;
mod view;
mod wrap;

use std::{
    fs,
    io::{self, IsTerminal, Write},
    path::Path,
    time::Duration,
};

use crossterm::terminal;
use unbraid::Completions;
use unbraid_core::{Demux, StreamError};

pub(crate) use self::screen::restore_terminal;
#[cfg(feature = "chat")]
pub(crate) use self::session::exit_signal;
use self::{
    session::Session,
    view::{PictureSize, View},
};
use crate::{
    args::DisplayArgs,
    exit::Failure,
    input::Playback,
    labels::Labels,
    lines::{self, Summary},
    output::stdout,
    palette::Palette,
};

/// How long a stream must last before the view opens. The view of a short recording would only flicker.
const OPENING_DELAY: Duration = Duration::from_millis(150);

/// The rows of deltas in a picture on the terminal.
const STRIP_ROWS: usize = 4;

/// What a stream is, beyond its events.
#[derive(Debug, Default)]
pub(crate) struct Shown<'s> {
    pub(crate) title: &'s str,
    /// The clock of a replay, which keys can stop and speed up.
    pub(crate) playback: Option<Playback>,
    /// How many lines follow the picture, if the picture has to fit on the screen. Otherwise it shows the whole text.
    pub(crate) lines_below: Option<u16>,
    /// What the choices are called beside their index.
    pub(crate) labels: Labels,
}

/// Shows a completion as it streams, then leaves its picture on the terminal, and prints a summary below.
///
/// `has_keys` is false if the stream itself is typed at the keyboard. The error is the output's.
pub(crate) async fn show(
    completions: &Completions,
    display: DisplayArgs,
    shown: Shown<'_>,
    has_keys: bool,
) -> io::Result<Summary> {
    if !can_open(display, has_keys) {
        return lines::print_live(completions, &shown.labels, &mut stdout()).await;
    }
    show_view(completions, display, shown).await
}

/// Whether the view can open: otherwise lines are printed.
pub(crate) fn can_open(display: DisplayArgs, has_keys: bool) -> bool {
    !display.plain && has_keys && io::stdout().is_terminal() && screen::is_possible()
}

/// Shows a completion in the view, which [can open](can_open).
pub(crate) async fn show_view(
    completions: &Completions,
    display: DisplayArgs,
    shown: Shown<'_>,
) -> io::Result<Summary> {
    let view = View::new(shown.title, true, Palette::detect());
    let view = view.with_playback(shown.playback);
    let view = view.with_labels(shown.labels.clone());
    let mut session = Session::new(view, completions);
    let is_over = session.apply_for(OPENING_DELAY).await;
    if !is_over || display.stay {
        session.run(completions, display.stay).await?;
    }
    session.finish().await;
    let mut out = stdout();
    print_picture(&mut session.view, shown.lines_below, &mut out)?;
    lines::print_marked_summary(completions, &shown.labels, &mut out).await
}

fn print_picture(
    view: &mut View,
    lines_below: Option<u16>,
    out: &mut impl Write,
) -> io::Result<()> {
    let (width, height) = terminal::size()?;
    // The summary has a line for each choice and one for the stream, and the prompt of the shell takes one.
    let choices = u16::try_from(view.choice_count()).unwrap_or(u16::MAX);
    let fit = |lines: u16| height.saturating_sub(lines.saturating_add(choices).saturating_add(2));
    let size = PictureSize {
        width,
        height: lines_below.map(fit),
        strip: STRIP_ROWS.min(usize::from(height / 8)).max(1),
        is_framed: false,
    };
    match view.picture(size) {
        Some(picture) => print::print(&picture, out),
        None => Ok(()),
    }
}

/// The picture of a whole stream, drawn without a terminal.
#[derive(Debug)]
pub(crate) struct Picture {
    view: View,
}

impl Picture {
    /// The columns of the picture, so that four choices are side by side.
    const WIDTH: u16 = 116;

    /// The rows of deltas.
    const STRIP_ROWS: usize = 7;

    pub(crate) fn new(title: &str) -> Self {
        Self {
            view: View::new(title, false, Palette::Ansi256),
        }
    }

    /// Adds the next events. Each arrived at the time that belongs to its ordinal in the stream.
    pub(crate) fn add_events(&mut self, demux: &mut Demux, time: impl Fn(u64) -> Duration) {
        while let Some(event) = demux.next_event() {
            let now = time(event.position.event.0);
            self.view.tick(now);
            self.view.apply(&event.map(Into::into), now);
        }
        if let Some(closed) = demux.closed() {
            let name = closed
                .as_ref()
                .map_or_else(StreamError::as_str, |()| "closed");
            self.view.close_now(name);
        }
    }

    /// Writes the picture as an SVG document. A stream without a choice has none, and its file is not written.
    pub(crate) fn write(&mut self, file: &Path) -> Result<(), Failure> {
        let picture = self.view.picture(PictureSize {
            width: Self::WIDTH,
            height: None,
            strip: Self::STRIP_ROWS,
            is_framed: true,
        });
        let Some(picture) = picture else {
            return Ok(());
        };
        let written = fs::write(file, svg::to_svg(&picture, DESCRIPTION));
        written.map_err(|error| Failure::File {
            path: file.into(),
            error,
        })
    }
}

/// What the picture shows, for those who cannot see it.
const DESCRIPTION: &str = "Above, the deltas of one stream in the order in which they arrive; below, the choices that they form";
