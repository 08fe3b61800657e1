//! Commands between gateways: each gateway reads one stream of its own.

use std::{collections::HashSet, sync::Arc, time::Duration};

use redis::Value;
use tokio::time::{sleep, timeout};
use unbraid_core::ChoiceIndex;
use unbraid_log::{
    Command, LogError, LogStatus, StreamId,
    internal::{CommandQueue, CommandSender},
};

use crate::{
    address::Address,
    background::Background,
    entry::{array, bytes, parse_fields, parse_streams},
    error::Failure,
    inner::{DAY, Inner, millis},
    link::{Backoff, Live, connect},
    script::{ADD, Request},
};

/// How many commands a gateway that does not read them may have. Older ones are dropped.
const MAX_QUEUED: usize = 100_000;

/// How many commands are read at once, and wait in this process.
const BATCH: usize = 256;

/// How long the server waits for a command, and after which time without an answer the connection is dead.
const BLOCK: Duration = Duration::from_secs(2);
const ANSWER: Duration = Duration::from_secs(3);

type Received = (StreamId, Command);

/// The commands that this gateway has received. Dropping it ends its task.
pub(crate) struct Inbox {
    queue: CommandQueue,
    /// Runs since commands were first requested.
    task: Background,
}

impl Inbox {
    pub(crate) fn new() -> Self {
        Self {
            queue: CommandQueue::new(BATCH),
            task: Background::default(),
        }
    }

    /// The commands to a key, which are read from the first call on. If the runtime of that call was shut down, they are read
    /// in that of this one.
    fn start(&self, address: &Arc<Address>, key: String) -> &CommandQueue {
        self.task.ensure(|| {
            let reader = InboxReader {
                address: Arc::clone(address),
                key,
                sender: self.queue.sender(),
                delivered: HashSet::new(),
            };
            reader.run()
        });
        &self.queue
    }
}

impl Inner {
    /// The commands to this gateway.
    pub(crate) fn received_commands(&self) -> &CommandQueue {
        let key = self.keys.commands(self.keys.gateway());
        self.inbox.start(self.link.address(), key)
    }

    pub(crate) async fn send_command(
        &self,
        id: &StreamId,
        command: Command,
    ) -> Result<(), LogError> {
        let found = self.find(id).await?;
        match found.status {
            LogStatus::Unknown => return Err(LogError::Unknown),
            LogStatus::Running { .. } => {}
            _ => return Ok(()),
        }
        let gateway = found
            .gateway
            .ok_or_else(|| LogError::unavailable("the stream's gateway is not known"))?;
        let request = Request::script(&ADD, &[&self.keys.commands(&gateway)])
            .arg(MAX_QUEUED)
            .arg(millis(DAY))
            .arg(("i", id.as_str(), "c"))
            .arg(encode(command));
        self.link.call(&request).await?;
        Ok(())
    }
}

fn encode(command: Command) -> String {
    match command {
        Command::Cancel(None) => "cancel".to_owned(),
        Command::Cancel(Some(choice)) => format!("cancel {}", choice.0),
        Command::Read => "read".to_owned(),
        // `Command` may grow in another version of unbraid-log than this one was built with.
        _ => "unknown".to_owned(),
    }
}

/// Reads the fields of a command. `None` for a command of a later version, which this one cannot carry out.
fn decode(fields: &[bytes::Bytes]) -> Option<Received> {
    let [_, id, _, command] = fields else {
        return None;
    };
    let id = std::str::from_utf8(id).ok()?.parse().ok()?;
    let command = std::str::from_utf8(command).ok()?;
    if command == "read" {
        return Some((id, Command::Read));
    }
    let choice = match command.strip_prefix("cancel")? {
        "" => None,
        choice => Some(ChoiceIndex(choice.strip_prefix(' ')?.parse().ok()?)),
    };
    Some((id, Command::Cancel(choice)))
}

struct InboxReader {
    address: Arc<Address>,
    key: String,
    sender: CommandSender,
    /// Commands that are delivered, but may still be in the stream.
    delivered: HashSet<Vec<u8>>,
}

impl InboxReader {
    async fn run(mut self) {
        let mut backoff = Backoff::new();
        let mut reported = String::new();
        loop {
            let failure = match connect(&self.address).await {
                Ok(connection) => {
                    let live = Live::new(connection);
                    loop {
                        match self.read(&live).await {
                            Ok(()) => (backoff, reported) = (Backoff::new(), String::new()),
                            Err(failure) => break failure,
                        }
                    }
                }
                Err(failure) => failure,
            };
            // One line for each outage and reason, however often it tries.
            let (address, reason) = (&self.address, failure.reason());
            if reported != reason {
                tracing::warn!(%address, reason, "commands wait for a connection to Redis");
                reported = reason;
            }
            sleep(backoff.next()).await;
        }
    }

    /// Waits for commands, removes them and delivers them. It always reads from the beginning: after a failover, new entries
    /// may have lower ids.
    async fn read(&mut self, live: &Arc<Live>) -> Result<(), Failure> {
        let request = Request::command("XREAD")
            .arg(("COUNT", BATCH, "BLOCK"))
            .arg(millis(BLOCK))
            .arg(("STREAMS", &self.key, "0-0"));
        let mut ids = Vec::new();
        let mut received = Vec::new();
        for (_, entries) in parse_streams(answer(live, &request).await?)? {
            let Value::Array(entries) = entries else {
                return Err(Failure::Answer);
            };
            for entry in entries {
                let [id, fields] = array(entry)?;
                let id = bytes(id)?.to_vec();
                if !self.delivered.contains(&id) {
                    received.extend(decode(&parse_fields(fields)?));
                }
                ids.push(id);
            }
        }
        if ids.is_empty() {
            return Ok(());
        }
        let removal = Request::command("XDEL").arg(&self.key).arg(&ids);
        let removed = answer(live, &removal).await;
        for command in received {
            // The receiver lives as long as the task.
            if self.sender.send(command).await.is_err() {
                return Ok(());
            }
        }
        self.delivered = match &removed {
            Ok(_) => HashSet::new(),
            Err(_) => ids.into_iter().collect(),
        };
        removed.map(drop)
    }
}

async fn answer(live: &Arc<Live>, request: &Request) -> Result<Value, Failure> {
    let answer = timeout(ANSWER, live.request(request)).await;
    answer.unwrap_or(Err(Failure::Timeout))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_read_as_it_was_written() {
        let id = StreamId::random().unwrap();
        for command in [
            Command::Cancel(None),
            Command::Cancel(Some(ChoiceIndex(0))),
            Command::Cancel(Some(ChoiceIndex(u32::MAX))),
            Command::Read,
        ] {
            let (text, encoded) = (id.as_str().to_owned(), encode(command));
            let fields = ["i".to_owned(), text, "c".to_owned(), encoded];
            let fields = fields.map(|field| field.into_bytes().into());
            assert_eq!(decode(&fields), Some((id.clone(), command)));
        }
    }

    #[test]
    fn a_command_of_a_later_version_is_ignored() {
        let id = StreamId::random().unwrap();
        for command in [
            "pause",
            "reads",
            "cancelled",
            "cancel x",
            "cancel 4294967296",
            "",
        ] {
            let fields = ["i", id.as_str(), "c", command];
            let fields = fields.map(|field| field.to_owned().into_bytes().into());
            assert_eq!(decode(&fields), None, "{command}");
        }
        assert_eq!(decode(&[]), None);
    }
}
