//! Whether tokens are counted.

use clap::ValueEnum;

/// Selects the figures of the usage.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct UsageArgs {
    /// Print the tokens that the server reported, or also count those that it did not
    #[arg(long, value_name = "FIGURES", value_enum)]
    usage: Option<UsageMode>,
}

/// The figures of the usage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum UsageMode {
    /// What the server reported
    Reported,
    /// Tokens that the server did not report are counted
    Estimate,
}

impl UsageArgs {
    /// The option, or the default of a command that does not have it.
    pub(crate) fn mode(self, default: UsageMode) -> UsageMode {
        self.usage.unwrap_or(default)
    }
}
