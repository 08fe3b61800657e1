//! How a completion is shown on the standard output.

/// Selects the live view or plain lines.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct DisplayArgs {
    /// Print lines on a terminal too, as when the output is not a terminal
    #[arg(long)]
    pub(crate) plain: bool,
    /// Keep the view open after the stream has ended, until q is pressed
    #[arg(long, conflicts_with = "plain")]
    pub(crate) stay: bool,
}

impl DisplayArgs {
    /// The arguments for lines on a terminal, too.
    pub(crate) fn as_lines(mut self) -> Self {
        self.plain = true;
        self
    }

    /// Whether the command line selects how the completion is shown.
    pub(crate) fn is_explicit(self) -> bool {
        self.plain || self.stay
    }
}
