//! Commands to the producer of a stream: messages in the subject of its gateway.

use std::{sync::Weak, time::Duration};

use futures::{StreamExt, future::try_join};
use serde::{Deserialize, Serialize};
use tokio::time::sleep;
use unbraid_log::{Command, LogError, LogStatus, StreamId, internal::CommandSender};

use crate::{
    api::{Store, Stored},
    entry::{decode_value, value_draft},
    inner::{Inner, within},
    names::is_token,
};

/// The names of such messages. An earlier version ignores a name that it does not know.
const CANCEL: &str = "command";
const READ: &str = "read";

/// Commands that wait in this process. More of them wait in the stream.
pub(crate) const CAPACITY: usize = 1024;

/// A subscriber can miss a message, so the stream is read at this interval, too.
const CHECK: Duration = Duration::from_secs(5);

/// The time between attempts to read while the server does not answer.
const RETRY: Duration = Duration::from_millis(250);

/// A command as it is stored.
#[derive(Debug, Serialize, Deserialize)]
struct Addressed {
    id: StreamId,
    /// The choice to cancel; all of them without it. Of no meaning for the other commands.
    #[serde(default)]
    choice: Option<u32>,
}

impl Inner {
    pub(crate) async fn send_command(
        &self,
        id: &StreamId,
        command: Command,
    ) -> Result<(), LogError> {
        // Each of the two steps has the time of a call: together they would fail while the server is slow, and the reports of readers
        // would be missing for all that time.
        let (origin, tail) = within(try_join(self.origin(id), self.tail(id))).await?;
        let gateway = origin.as_ref().map(|origin| origin.gateway.clone());
        match within(self.status_of(origin, tail)).await? {
            LogStatus::Unknown => return Err(LogError::Unknown),
            LogStatus::Running { .. } => {}
            _ => return Ok(()),
        }
        let gateway = gateway.ok_or(LogError::Unknown)?;
        if !is_token(&gateway) {
            return Err(LogError::InvalidRecord {
                what: "the name of a gateway",
                offset: 0,
            });
        }
        let (name, choice) = match command {
            Command::Cancel(choice) => (CANCEL, choice.map(|choice| choice.0)),
            Command::Read => (READ, None),
            _ => {
                return Err(LogError::InvalidRecord {
                    what: "a command of a later version",
                    offset: 0,
                });
            }
        };
        let addressed = Addressed {
            id: id.clone(),
            choice,
        };
        let subject = self.names.commands(&gateway);
        let draft = value_draft(subject, name, &addressed);
        within(async { Ok(self.api.publish_anew(Store::Log, draft).await?) }).await?;
        Ok(())
    }

    /// Takes the next command after a number. `None` if there is none; `Some` without a command for a foreign message.
    async fn next_command(
        &self,
        after: u64,
    ) -> Result<Option<(u64, Option<(StreamId, Command)>)>, LogError> {
        let subject = self.names.commands(&self.gateway);
        let stored = self.api.next(Store::Log, subject, after + 1).await?;
        Ok(stored.map(|stored| (stored.sequence, decode(&stored))))
    }

    /// Reads the commands after a number, and removes them from the stream. Returns the number of the last one.
    async fn receive(&self, mut position: u64, sender: &CommandSender) -> Result<u64, LogError> {
        let subject = self.names.commands(&self.gateway);
        let last = self.api.last(Store::Log, subject.clone()).await?;
        if last.is_some_and(|last| last.sequence < position) {
            // The stream was lost and created again, so its numbers begin again.
            position = 0;
        }
        let start = position;
        while let Some((sequence, command)) = self.next_command(position).await? {
            if let Some(command) = command
                && sender.try_send(command).is_err()
            {
                // Nobody takes them now. They stay in the stream.
                break;
            }
            position = sequence;
        }
        if position > start {
            // What is not removed now is removed with the next commands, or expires.
            let _removed = self.api.purge_before(subject, position + 1).await;
        }
        Ok(position)
    }
}

/// Reads a command. `None` for one of a later version, and for a foreign message.
fn decode(stored: &Stored) -> Option<(StreamId, Command)> {
    if let Ok(addressed) = decode_value::<Addressed>(stored, CANCEL) {
        let choice = addressed.choice.map(Into::into);
        return Some((addressed.id, Command::Cancel(choice)));
    }
    let addressed = decode_value::<Addressed>(stored, READ).ok()?;
    Some((addressed.id, Command::Read))
}

/// Receives commands until the log is dropped.
pub(crate) async fn follow(log: Weak<Inner>, sender: CommandSender) {
    let Some(inner) = log.upgrade() else {
        return;
    };
    let subject = inner.names.live_commands(&inner.gateway);
    let mut link = inner.api.connection.link();
    let subscribed = inner.api.client().subscribe(subject).await;
    drop(inner);
    let Ok(mut arrivals) = subscribed else {
        return;
    };
    let mut position = 0;
    while let Some(inner) = log.upgrade() {
        let received = inner.receive(position, &sender).await;
        drop(inner);
        let pause = match received {
            Ok(last) => {
                position = last;
                CHECK
            }
            Err(_) => RETRY,
        };
        tokio::select! {
            arrival = arrivals.next() => if arrival.is_none() {
                return;
            },
            changed = link.changed() => if changed.is_err() {
                return;
            },
            () = sleep(pause) => {}
            () = sender.closed() => return,
        }
    }
}
