//! An input: a file or the standard input.

use std::{
    ffi::OsString,
    fmt,
    fs::File,
    io::{self, IsTerminal, Read},
    path::{Path, PathBuf},
};

use tokio::io::AsyncRead;

use super::{gzip::GzipReader, thread_reader::ThreadReader};
use crate::{exit::Failure, output::print_error, printable::printable};

/// The longest input that is read into memory as a whole.
const MAX_BYTES: u64 = 1 << 30;

/// An input as the command line names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Input {
    File(PathBuf),
    Stdin,
}

impl Input {
    /// Opens the input, and decompresses it if it is gzip. Its reads return the bytes that are available, so that a pipe stays
    /// live.
    pub(crate) fn open(&self) -> Result<Box<dyn Read + Send>, Failure> {
        self.try_open().map_err(|error| self.failure(error))
    }

    /// Opens the input for a runtime.
    pub(crate) fn open_async(&self) -> Result<impl AsyncRead + Send + Unpin + use<>, Failure> {
        Ok(ThreadReader::spawn(self.open()?))
    }

    /// Reads the whole input into memory. One that is longer than any recording is refused: it may be compressed zeros.
    pub(crate) fn read_to_end(&self) -> Result<Vec<u8>, Failure> {
        let mut bytes = Vec::new();
        let mut limited = self.open()?.take(MAX_BYTES + 1);
        let read = limited.read_to_end(&mut bytes);
        read.map_err(|error| self.failure(error))?;
        if bytes.len() as u64 > MAX_BYTES {
            return Err(self.failure(io::Error::other("is longer than 1 GiB")));
        }
        Ok(bytes)
    }

    /// The path of a file. The standard input has none.
    pub(crate) fn path(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Stdin => None,
        }
    }

    /// Whether the bytes arrive at their own times: a pipe or a terminal, but not a file.
    pub(crate) fn is_live(&self) -> bool {
        match self {
            Self::File(path) => !path.is_file(),
            Self::Stdin => !stdin_is_file(),
        }
    }

    /// A failure to open or read this input.
    pub(crate) fn failure(&self, error: io::Error) -> Failure {
        Failure::open(self, error)
    }

    fn try_open(&self) -> io::Result<Box<dyn Read + Send>> {
        let Self::File(path) = self else {
            self.announce_terminal();
            return Ok(Box::new(GzipReader::new(io::stdin())));
        };
        refuse_directory(path)?;
        Ok(Box::new(GzipReader::new(File::open(path)?)))
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

/// Whether the standard input is redirected from a regular file.
#[cfg(unix)]
fn stdin_is_file() -> bool {
    use std::os::fd::AsFd;
    let file = io::stdin().as_fd().try_clone_to_owned().map(File::from);
    file.and_then(|file| file.metadata())
        .is_ok_and(|metadata| metadata.is_file())
}

#[cfg(not(unix))]
fn stdin_is_file() -> bool {
    false
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
