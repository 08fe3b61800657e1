//! Records the body of an answer in a file.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use tokio::{sync::oneshot, time};

use crate::{exchange::Exchange, exit::Failure};

/// How long the end of the program waits for a recording. The client reads on for a tenth of a second after the end mark of
/// a body, and then drops the body together with its recorder.
const TIMEOUT: Duration = Duration::from_secs(2);

/// A file that is open for writing. It keeps its content until an answer begins.
#[derive(Debug)]
pub(super) struct RecordFile {
    path: PathBuf,
    file: File,
}

impl RecordFile {
    pub(super) fn open(path: &Path) -> Result<Self, Failure> {
        let opened = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(path);
        let file = opened.map_err(|error| Failure::File {
            path: path.into(),
            error,
        })?;
        Ok(Self {
            path: path.into(),
            file,
        })
    }

    /// Truncates the file, and starts to record into it.
    pub(super) fn start(self) -> (Recorder, RecordingResult) {
        let (error_sender, error) = oneshot::channel();
        let mut recorder = Recorder {
            file: Some(self.file),
            error_sender: Some(error_sender),
        };
        recorder.attempt(|file| match file.metadata()?.is_file() {
            true => {
                // The exchange that `replay` recorded describes the content that is replaced.
                match fs::remove_file(Exchange::path(&self.path)) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                    _ => file.set_len(0),
                }
            }
            false => Ok(()), // a pipe or a device cannot be truncated
        });
        let result = RecordingResult {
            path: self.path,
            error,
        };
        (recorder, result)
    }
}

/// Writes the bytes of a body. An error, such as a full disk, does not end the answer: its tokens are already paid for.
#[derive(Debug)]
pub(super) struct Recorder {
    file: Option<File>,
    error_sender: Option<oneshot::Sender<io::Error>>,
}

impl Recorder {
    pub(super) fn write(&mut self, bytes: &[u8]) {
        self.attempt(|file| file.write_all(bytes));
    }

    /// Runs an operation on the file. After an error nothing more is written, because a recording must not have gaps.
    fn attempt(&mut self, operation: impl FnOnce(&mut File) -> io::Result<()>) {
        let Some(file) = &mut self.file else {
            return;
        };
        if let Err(error) = operation(file) {
            self.file = None;
            if let Some(sender) = self.error_sender.take() {
                let _unreceived = sender.send(error);
            }
        }
    }
}

/// The result of a [`Recorder`], which the reader of the body owns and drops.
#[derive(Debug)]
pub(super) struct RecordingResult {
    path: PathBuf,
    error: oneshot::Receiver<io::Error>,
}

impl RecordingResult {
    /// Waits until the recorder is dropped, and returns its error.
    pub(super) async fn wait(self) -> Result<(), Failure> {
        match time::timeout(TIMEOUT, self.error).await {
            Ok(Ok(error)) => Err(Failure::File {
                path: self.path,
                error,
            }),
            // The recorder was dropped without an error, or the body goes on.
            Ok(Err(_)) | Err(_) => Ok(()),
        }
    }
}
