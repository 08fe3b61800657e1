//! Where the bytes come from: a file, or the standard input.

use std::{
    ffi::OsString,
    fmt,
    fs::File,
    io::{self, IsTerminal, Read},
    path::{Path, PathBuf},
};

use tokio::io::AsyncRead;

/// An input as it was named on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    File(PathBuf),
    Stdin,
}

impl Source {
    /// Opens the input. Its reads give what is there at once, so that a pipe stays live.
    ///
    /// A directory is refused here: some systems open one and fail at the first read.
    pub(crate) fn open(&self) -> io::Result<Box<dyn Read + Send>> {
        let Self::File(path) = self else {
            return Ok(Box::new(io::stdin()));
        };
        refuse_directory(path)?;
        Ok(Box::new(File::open(path)?))
    }

    /// The same, for a runtime.
    pub(crate) async fn open_async(&self) -> io::Result<Box<dyn AsyncRead + Send + Unpin>> {
        let Self::File(path) = self else {
            return Ok(Box::new(tokio::io::stdin()));
        };
        refuse_directory(path)?;
        Ok(Box::new(tokio::fs::File::open(path).await?))
    }

    /// Whether the stream is typed at a terminal, or pasted: the keys are part of it then.
    pub(crate) fn is_typed(&self) -> bool {
        match self {
            Self::File(_) => false,
            Self::Stdin => io::stdin().is_terminal(),
        }
    }
}

fn refuse_directory(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Err(io::Error::new(
            io::ErrorKind::IsADirectory,
            "is a directory",
        ));
    }
    Ok(())
}

impl From<OsString> for Source {
    fn from(name: OsString) -> Self {
        if name == "-" {
            Self::Stdin
        } else {
            Self::File(name.into())
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => crate::printable::printable(&path.to_string_lossy()).fmt(f),
            Self::Stdin => f.write_str("standard input"),
        }
    }
}
