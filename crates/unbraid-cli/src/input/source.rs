//! An input: a file or the standard input.

use std::{
    ffi::OsString,
    fmt,
    fs::File,
    io::{self, IsTerminal, Read},
    path::{Path, PathBuf},
};

use tokio::io::AsyncRead;

use crate::{exit::Failure, output::print_error, printable::printable};

/// An input as the command line names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Input {
    File(PathBuf),
    Stdin,
}

impl Input {
    /// Opens the input. Its reads return the bytes that are available, so that a pipe stays live.
    pub(crate) fn open(&self) -> Result<Box<dyn Read + Send>, Failure> {
        self.try_open().map_err(|error| self.failure(error))
    }

    /// Opens the input for a runtime.
    pub(crate) async fn open_async(&self) -> Result<Box<dyn AsyncRead + Send + Unpin>, Failure> {
        let opened = self.try_open_async().await;
        opened.map_err(|error| self.failure(error))
    }

    /// Reads the whole input into memory.
    pub(crate) fn read_to_end(&self) -> Result<Vec<u8>, Failure> {
        let mut bytes = Vec::new();
        let read = self.open()?.read_to_end(&mut bytes);
        read.map_err(|error| self.failure(error))?;
        Ok(bytes)
    }

    /// A failure to open or read this input.
    pub(crate) fn failure(&self, error: io::Error) -> Failure {
        Failure::open(self, error)
    }

    fn try_open(&self) -> io::Result<Box<dyn Read + Send>> {
        let Self::File(path) = self else {
            self.announce_terminal();
            return Ok(Box::new(io::stdin()));
        };
        refuse_directory(path)?;
        Ok(Box::new(File::open(path)?))
    }

    async fn try_open_async(&self) -> io::Result<Box<dyn AsyncRead + Send + Unpin>> {
        let Self::File(path) = self else {
            self.announce_terminal();
            return Ok(Box::new(tokio::io::stdin()));
        };
        refuse_directory(path)?;
        Ok(Box::new(tokio::fs::File::open(path).await?))
    }

    /// Says what the command waits for, if nobody has redirected its input. Otherwise it would appear to hang.
    fn announce_terminal(&self) {
        let end = if cfg!(windows) {
            "Ctrl-Z and Enter"
        } else {
            "Ctrl-D"
        };
        if self.is_terminal() {
            print_error(format_args!(
                "unbraid: waiting for a stream on the terminal; end it with {end}, or name a file, or use a pipe: curl -sN .. | unbraid"
            ));
        }
    }

    /// Whether the stream is typed or pasted at a terminal. Its keys belong to the stream then.
    pub(crate) fn is_terminal(&self) -> bool {
        match self {
            Self::File(_) => false,
            Self::Stdin => io::stdin().is_terminal(),
        }
    }
}

/// Some systems open a directory and fail only at the first read, which would be reported as a transport error.
fn refuse_directory(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Err(io::Error::new(
            io::ErrorKind::IsADirectory,
            "is a directory",
        ));
    }
    Ok(())
}

impl From<OsString> for Input {
    fn from(name: OsString) -> Self {
        if name == "-" {
            Self::Stdin
        } else {
            Self::File(name.into())
        }
    }
}

impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => printable(&path.to_string_lossy()).fmt(f),
            Self::Stdin => f.write_str("standard input"),
        }
    }
}
