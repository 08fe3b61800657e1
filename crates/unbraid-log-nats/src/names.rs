//! The names of streams and subjects.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::digest::{SHA256, digest};
use unbraid_log::{ClaimKey, StreamId};

use crate::NatsError;

/// The names of everything that a log with one prefix uses.
///
/// Subjects with `=` cannot be those of a stream: an id does not contain this character.
#[derive(Debug, Clone)]
pub(crate) struct Names {
    prefix: String,
    /// The stream of the records.
    pub(crate) log: String,
    /// The stream of everything that has one value for each subject.
    pub(crate) values: String,
}

/// Whether a text can be one token of a subject and a part of a stream's name.
pub(crate) fn is_token(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    (1..=64).contains(&text.len()) && text.bytes().all(is_allowed)
}

impl Names {
    pub(crate) fn new(prefix: &str) -> Result<Self, NatsError> {
        if !is_token(prefix) {
            return Err(NatsError::InvalidOption {
                option: "prefix",
                reason: "1 to 64 of the characters A-Z, a-z, 0-9, _ and -",
            });
        }
        let log = prefix.to_ascii_uppercase();
        Ok(Self {
            prefix: prefix.to_owned(),
            values: format!("{log}_KV"),
            log,
        })
    }

    fn subject(&self, kind: &str, token: &str) -> String {
        format!("{}.{kind}.{token}", self.prefix)
    }

    pub(crate) fn log_subjects(&self) -> Vec<String> {
        vec![self.subject("log", "*")]
    }

    pub(crate) fn value_subjects(&self) -> Vec<String> {
        let kinds = ["meta", "lease", "claim", "ended"];
        kinds.map(|kind| self.subject(kind, "*")).to_vec()
    }

    /// From and to: what is stored under the first is sent to the subscribers of the second.
    pub(crate) fn republish(&self) -> (String, String) {
        (self.subject("log", ">"), self.subject("live", ">"))
    }

    /// The records of a stream, and its seal.
    pub(crate) fn records(&self, id: &StreamId) -> String {
        self.subject("log", id.as_str())
    }

    /// Where the server sends what it has stored for a stream.
    pub(crate) fn live(&self, id: &StreamId) -> String {
        self.subject("live", id.as_str())
    }

    pub(crate) fn meta(&self, id: &StreamId) -> String {
        self.subject("meta", id.as_str())
    }

    pub(crate) fn lease(&self, id: &StreamId) -> String {
        self.subject("lease", id.as_str())
    }

    /// A sealed stream whose events are still kept.
    pub(crate) fn ended(&self, id: &StreamId) -> String {
        self.subject("ended", id.as_str())
    }

    /// All sealed streams, the one that was sealed first being the first.
    pub(crate) fn all_ended(&self) -> String {
        self.subject("ended", "*")
    }

    /// The name of a claim contains what a client sends, so the subject has a digest of it.
    pub(crate) fn claim(&self, key: &ClaimKey) -> String {
        let digest = digest(&SHA256, key.name().as_bytes());
        self.subject("claim", &URL_SAFE_NO_PAD.encode(digest))
    }

    /// The commands to a gateway. They are in the stream of the records, because that republishes.
    pub(crate) fn commands(&self, gateway: &str) -> String {
        self.subject("log", &format!("={gateway}"))
    }

    pub(crate) fn live_commands(&self, gateway: &str) -> String {
        self.subject("live", &format!("={gateway}"))
    }

    /// A subject of each kind under which something is stored, with this token, which is that of nothing else.
    pub(crate) fn stored(&self, token: &str) -> [String; 5] {
        ["log", "meta", "lease", "claim", "ended"].map(|kind| self.subject(kind, token))
    }

    /// The permissions that a user needs, for JetStream in this domain.
    pub(crate) fn permissions(&self, domain: Option<&str>) -> String {
        let own = format!("{}.>", self.prefix);
        let domain = domain.map(|name| format!("{name}.")).unwrap_or_default();
        let api = format!("$JS.{domain}API.>");
        format!("publish {own} and {api}, subscribe {own} and _INBOX.>")
    }

    /// A message that is written to learn the time of the server, and whether it stores values.
    pub(crate) fn clock(&self) -> String {
        self.subject("lease", "=clock")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_one_token() {
        for prefix in ["", "a.b", "a b", "a*", ">", "ä", &"a".repeat(65)] {
            assert!(Names::new(prefix).is_err(), "{prefix}");
        }
        let names = Names::new("my-team_1").unwrap();
        assert_eq!(
            (names.log.as_str(), names.values.as_str()),
            ("MY-TEAM_1", "MY-TEAM_1_KV")
        );
    }

    #[test]
    fn the_permissions_are_those_for_the_domain() {
        let names = Names::new("p").unwrap();
        assert_eq!(
            names.permissions(Some("hub")),
            "publish p.> and $JS.hub.API.>, subscribe p.> and _INBOX.>"
        );
    }

    #[test]
    fn a_claim_shows_nothing_of_the_client() {
        let names = Names::new("p").unwrap();
        let key = ClaimKey::new("alice", "/v1", "order é/*>. 1", [0; 32]);
        let subject = names.claim(&key);
        assert!(
            subject.starts_with("p.claim.") && subject.len() == 8 + 43,
            "{subject}"
        );
        assert!(is_token(&subject[8..]) && !subject.contains("alice"));
        let other = ClaimKey::new("alice", "/v1", "order 2", [0; 32]);
        assert_ne!(names.claim(&other), subject);
    }
}
