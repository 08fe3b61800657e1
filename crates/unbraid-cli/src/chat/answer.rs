//! The answer as it is read: its first bytes are kept, and all of them recorded if that was asked for.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use futures::TryStreamExt;
use tokio::{sync::oneshot, time};
use unbraid::Completions;
use unbraid_core::Config;
use unbraid_http::{Client, HttpError, Request};

use crate::{exit::Failure, watch::Head};

/// An answer that has begun.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) completions: Completions,
    pub(super) head: Head,
    recording: Option<Recording>,
}

impl Answer {
    /// The answer of one request or several, whose bytes nobody sees.
    pub(super) async fn of(client: &Client, request: &Request) -> Result<Self, HttpError> {
        Ok(Self {
            completions: client.send(request).await?,
            head: Head::default(),
            recording: None,
        })
    }

    /// The answer of one request, read by these options.
    pub(super) async fn recorded(
        client: &Client,
        request: &Request,
        options: Config,
        record: Option<Record>,
    ) -> Result<Self, HttpError> {
        let body = client.open(request).await?;
        let settings = body.stream_config().config(options);
        let head = Head::default();
        let (mut tape, recording) = record.map(Record::begin).unzip();
        let kept = head.clone();
        let bytes = body.inspect_ok(move |bytes| {
            kept.keep(bytes);
            if let Some(tape) = &mut tape {
                tape.write(bytes);
            }
        });
        Ok(Self {
            completions: settings.from_byte_stream(bytes),
            head,
            recording,
        })
    }

    /// Waits until the record is complete.
    pub(super) async fn written(self) -> Result<(), Failure> {
        match self.recording {
            Some(recording) => recording.over().await,
            None => Ok(()),
        }
    }
}

/// A file that can be written. What it holds stays until an answer has come.
#[derive(Debug)]
pub(super) struct Record {
    path: PathBuf,
    file: File,
}

impl Record {
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

    fn begin(self) -> (Tape, Recording) {
        let (told, over) = oneshot::channel();
        let mut tape = Tape {
            file: Some(self.file),
            told: Some(told),
        };
        tape.attempt(|file| match file.metadata()?.is_file() {
            true => file.set_len(0),
            false => Ok(()), // a pipe or a device
        });
        let recording = Recording {
            path: self.path,
            over,
        };
        (tape, recording)
    }
}

/// Writes what comes. A full disk does not end an answer that is paid for.
#[derive(Debug)]
struct Tape {
    file: Option<File>,
    told: Option<oneshot::Sender<io::Error>>,
}

impl Tape {
    fn write(&mut self, bytes: &[u8]) {
        self.attempt(|file| file.write_all(bytes));
    }

    /// After a failure nothing more is written: a record has no holes.
    fn attempt(&mut self, work: impl FnOnce(&mut File) -> io::Result<()>) {
        let Some(file) = &mut self.file else {
            return;
        };
        if let Err(error) = work(file) {
            self.file = None;
            if let Some(told) = self.told.take() {
                let _unheard = told.send(error);
            }
        }
    }
}

/// What becomes of a [`Tape`], which goes with the body.
#[derive(Debug)]
struct Recording {
    path: PathBuf,
    over: oneshot::Receiver<io::Error>,
}

/// The rest of a body is read for a tenth of a second behind its end mark, and then dropped.
const REST: Duration = Duration::from_secs(2);

impl Recording {
    async fn over(self) -> Result<(), Failure> {
        match time::timeout(REST, self.over).await {
            Ok(Ok(error)) => Err(Failure::File {
                path: self.path,
                error,
            }),
            Ok(Err(_)) | Err(_) => Ok(()), // dropped without an error, or cut off
        }
    }
}
