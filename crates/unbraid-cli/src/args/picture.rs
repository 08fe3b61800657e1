//! The picture of a stream as a file.

use std::path::{Path, PathBuf};

use clap::{ValueHint, builder::PathBufValueParser};

/// Selects a picture instead of the view.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct PictureArgs {
    /// Write a picture of the whole stream to a file, as SVG, and show nothing
    #[arg(
        long,
        value_name = "FILE",
        value_parser = PathBufValueParser::new(),
        value_hint = ValueHint::FilePath,
        conflicts_with_all = ["plain", "stay"]
    )]
    svg: Option<PathBuf>,
}

impl PictureArgs {
    /// The file to write, if a picture is requested.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.svg.as_deref()
    }
}
