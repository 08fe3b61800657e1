//! The names of the keys.

use ring::digest::{SHA256, digest};
use unbraid_log::{ClaimKey, StreamId};

/// The keys of one log, all under its prefix.
#[derive(Debug, Clone)]
pub(crate) struct Keys {
    prefix: String,
    gateway: String,
}

/// The keys of one stream. The braces make them share a hash slot, so that a script may use all of them.
#[derive(Debug, Clone)]
pub(crate) struct StreamKeys {
    pub(crate) log: String,
    pub(crate) meta: String,
    pub(crate) lease: String,
}

impl StreamKeys {
    pub(crate) fn all(&self) -> [&str; 3] {
        [&self.log, &self.meta, &self.lease]
    }
}

impl Keys {
    pub(crate) fn new(prefix: String, gateway: String) -> Self {
        Self { prefix, gateway }
    }

    pub(crate) fn gateway(&self) -> &str {
        &self.gateway
    }

    pub(crate) fn stream(&self, id: &StreamId) -> StreamKeys {
        let key = |role| format!("{}:{{{id}}}:{role}", self.prefix);
        StreamKeys {
            log: key("log"),
            meta: key("meta"),
            lease: key("lease"),
        }
    }

    /// The claim of a key, and its lease. The braces around the first make both share a hash slot.
    pub(crate) fn claim_and_lease(&self, key: &ClaimKey) -> [String; 2] {
        let claim = self.claim(key);
        let lease = format!("{}:claim-lease:{{{claim}}}", self.prefix);
        [claim, lease]
    }

    /// A digest, because the name contains a client's own characters, as many as it likes.
    fn claim(&self, key: &ClaimKey) -> String {
        let name = digest(&SHA256, key.name().as_bytes());
        let mut text = format!("{}:claim:", self.prefix);
        for byte in name.as_ref() {
            text.push(char::from_digit(u32::from(byte >> 4), 16).unwrap_or('0'));
            text.push(char::from_digit(u32::from(byte & 15), 16).unwrap_or('0'));
        }
        text
    }

    /// The commands to a gateway.
    pub(crate) fn commands(&self, gateway: &str) -> String {
        format!("{}:commands:{gateway}", self.prefix)
    }

    /// The key of this gateway that never exists.
    pub(crate) fn present(&self) -> String {
        format!("{}:present:{}", self.prefix, self.gateway)
    }

    /// The key by which a blocked connection of this gateway learns that it has to read another stream.
    pub(crate) fn wake(&self, shard: u64) -> String {
        format!("{}:wake:{}:{shard}", self.prefix, self.gateway)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_of_a_stream_share_a_hash_slot() {
        let keys = Keys::new("p".to_owned(), "g".to_owned());
        let id: StreamId = "AAAAAAAAAAAAAAAAAAAAAA".parse().unwrap();
        let stream = keys.stream(&id);
        assert_eq!(
            stream.all(),
            [
                "p:{AAAAAAAAAAAAAAAAAAAAAA}:log",
                "p:{AAAAAAAAAAAAAAAAAAAAAA}:meta",
                "p:{AAAAAAAAAAAAAAAAAAAAAA}:lease"
            ]
        );
    }

    #[test]
    fn the_key_of_a_claim_contains_nothing_of_the_client() {
        let keys = Keys::new("p".to_owned(), "g".to_owned());
        let claim = keys.claim(&ClaimKey::new("a\r\n{}", "/", "k", [0; 32]));
        assert_eq!(claim.len(), "p:claim:".len() + 64);
        assert!(
            claim
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b':')
        );
    }
}
