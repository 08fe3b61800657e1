//! The values of claims: a version byte, the request's fingerprint, and the id of its stream.

use std::time::Duration;

use redis::Value;
use unbraid_log::{Claim, ClaimKey, LogError, StreamId};

use crate::{
    entry::foreign,
    inner::{Inner, millis},
    script::{KEEP_CLAIM, RELEASE_CLAIM, Request},
};

const VERSION: u8 = 1;

fn encode(key: &ClaimKey, id: &StreamId) -> Vec<u8> {
    let mut value = vec![VERSION];
    value.extend_from_slice(&key.fingerprint);
    value.extend_from_slice(id.as_str().as_bytes());
    value
}

fn decode(value: &[u8]) -> Result<(StreamId, [u8; 32]), LogError> {
    match value.split_first() {
        Some((&VERSION, rest)) => {
            let (fingerprint, id) = rest
                .split_first_chunk()
                .ok_or_else(|| foreign("the claim is too short"))?;
            let id = std::str::from_utf8(id)
                .ok()
                .and_then(|id| id.parse().ok())
                .ok_or_else(|| foreign("the claim's stream id"))?;
            Ok((id, *fingerprint))
        }
        Some((&version, _)) => Err(LogError::UnsupportedVersion { version }),
        None => Err(foreign("the claim is empty")),
    }
}

impl Inner {
    pub(crate) async fn claim(&self, key: &ClaimKey, id: &StreamId) -> Result<Claim, LogError> {
        let set = Request::command("SET")
            .arg(self.keys.claim(key))
            .arg(encode(key, id))
            .arg(("NX", "GET", "PX"))
            .arg(millis(self.options.claim_pending));
        let replicas = self.options.replicas;
        match self.link.call_confirmed(&set, replicas).await? {
            Value::Nil => Ok(Claim::Acquired),
            Value::BulkString(value) => {
                let (holder, fingerprint) = decode(&value)?;
                if holder != *id {
                    return Ok(Claim::Held {
                        id: holder,
                        fingerprint,
                    });
                }
                self.confirm_earlier_writes().await?;
                Ok(Claim::Acquired)
            }
            _ => Err(foreign("the claim's answer")),
        }
    }

    /// `WAIT` concerns the writes of its own connection, and an earlier attempt may have used another one. Replication has one
    /// order, so a new write covers all earlier ones.
    async fn confirm_earlier_writes(&self) -> Result<(), LogError> {
        let replicas = self.options.replicas;
        if replicas > 0 {
            let write = Request::command("SET")
                .arg(self.keys.confirmed())
                .arg((1, "PX", 1000));
            self.link.call_confirmed(&write, replicas).await?;
        }
        Ok(())
    }

    /// Keeps the claim of a stream that is opened, for this long.
    pub(crate) async fn keep_claim(
        &self,
        key: &ClaimKey,
        id: &StreamId,
        duration: Duration,
    ) -> Result<(), LogError> {
        let request = Request::script(&KEEP_CLAIM, &[&self.keys.claim(key)])
            .arg(encode(key, id))
            .arg(id.as_str())
            .arg(millis(duration));
        self.link.call(&request).await?;
        Ok(())
    }

    pub(crate) async fn release(&self, key: &ClaimKey, id: &StreamId) -> Result<(), LogError> {
        let request = Request::script(&RELEASE_CLAIM, &[&self.keys.claim(key)]).arg(id.as_str());
        self.link.call(&request).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_read_as_it_was_written() {
        let key = ClaimKey::new("p", "/", "k", [7; 32]);
        let id = StreamId::random().unwrap();
        let mut value = encode(&key, &id);
        assert_eq!(decode(&value), Ok((id, [7; 32])));
        value[0] = 2;
        let later = LogError::UnsupportedVersion { version: 2 };
        assert_eq!(decode(&value), Err(later));
        assert!(decode(&[VERSION; 20]).is_err());
        assert!(decode(&[VERSION; 40]).is_err());
        assert!(decode(b"").is_err());
    }
}
