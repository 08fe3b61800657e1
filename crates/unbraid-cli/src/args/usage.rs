//! Whether tokens are counted.

use clap::{
    ValueEnum,
    builder::{EnumValueParser, TypedValueParser},
};

use crate::{exit::missing, usage::CAN_COUNT};

/// Selects the figures of the usage.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct UsageArgs {
    /// Print the tokens that the server reported, or also count those that it did not
    #[arg(long, value_name = "FIGURES", value_parser = EnumValueParser::new().try_map(check))]
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

    pub(crate) fn is_explicit(self) -> bool {
        self.usage.is_some()
    }
}

/// Refuses what this build cannot do.
fn check(mode: UsageMode) -> Result<UsageMode, String> {
    match mode {
        UsageMode::Estimate if !CAN_COUNT => Err(missing("counting tokens", "tokens")),
        UsageMode::Reported | UsageMode::Estimate => Ok(mode),
    }
}
