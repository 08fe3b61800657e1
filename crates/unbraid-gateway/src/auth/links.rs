//! Signed links, because `EventSource` cannot send headers.

use std::time::{SystemTime, UNIX_EPOCH};

use ring::hmac;

use super::{base64url, equal};

/// What a link permits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Reading the status and the views.
    Read,
    /// Also cancelling.
    Cancel,
}

/// Why a link was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LinkError {
    Invalid,
    Expired,
}

/// Signs links and checks them.
#[derive(Debug)]
pub(crate) struct LinkSigner(hmac::Key);

impl Scope {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Cancel => "cancel",
        }
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        match text {
            "read" => Some(Self::Read),
            "cancel" => Some(Self::Cancel),
            _ => None,
        }
    }
}

impl LinkSigner {
    pub(crate) fn new(secret: &[u8]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, secret))
    }

    /// Returns the query of a link.
    pub(crate) fn query(&self, id: &str, scope: Scope, expires: u64) -> String {
        let sig = self.sign(id, scope, expires);
        format!("scope={}&exp={expires}&sig={sig}", scope.as_str())
    }

    /// The parts are separated by a character that none of them contains.
    fn sign(&self, id: &str, scope: Scope, expires: u64) -> String {
        let message = format!("{id}\n{}\n{expires}", scope.as_str());
        base64url(hmac::sign(&self.0, message.as_bytes()).as_ref())
    }

    /// Checks the three parameters of a link to a stream.
    pub(crate) fn check(
        &self,
        id: &str,
        scope: Option<&str>,
        expires: Option<&str>,
        sig: &str,
    ) -> Result<Scope, LinkError> {
        let scope = scope.and_then(Scope::parse).ok_or(LinkError::Invalid)?;
        let expires = expires.ok_or(LinkError::Invalid)?;
        // The signature is that of the number, so a number that is written in another way is not the link that was signed.
        let is_canonical = |number: &u64| number.to_string() == expires;
        let expires = expires.parse().ok().filter(is_canonical);
        let expires: u64 = expires.ok_or(LinkError::Invalid)?;
        if !equal(sig.as_bytes(), self.sign(id, scope, expires).as_bytes()) {
            return Err(LinkError::Invalid);
        }
        if expires <= unix_now() {
            return Err(LinkError::Expired);
        }
        Ok(scope)
    }
}

/// The Unix time in seconds.
pub(crate) fn unix_now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |time| time.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_permits_its_stream_and_scope_until_it_expires() {
        let signer = LinkSigner::new(b"secret");
        let later = unix_now() + 60;
        let text = later.to_string();
        let sig = signer.sign("id", Scope::Read, later);
        let others = ["0", "+"].map(|prefix| format!("{prefix}{text}"));
        let check = |id, scope, exp, sig: &str| signer.check(id, Some(scope), Some(exp), sig);
        assert_eq!(check("id", "read", &text, &sig), Ok(Scope::Read));
        for (id, scope, exp) in [
            ("other", "read", text.as_str()),
            ("id", "cancel", &text),
            ("id", "read", "99999999999"),
            ("id", "read", "+1"),
            ("id", "read", &others[0]),
            ("id", "read", &others[1]),
            ("id", "read", ""),
            ("id", "write", &text),
        ] {
            assert_eq!(check(id, scope, exp, &sig), Err(LinkError::Invalid));
        }
        assert_eq!(check("id", "read", &text, ""), Err(LinkError::Invalid));
        let past = unix_now() - 1;
        let sig = signer.sign("id", Scope::Read, past);
        let past = past.to_string();
        assert_eq!(check("id", "read", &past, &sig), Err(LinkError::Expired));
        assert_eq!(
            signer.check("id", None, None, &sig),
            Err(LinkError::Invalid)
        );
    }

    #[test]
    fn another_secret_gives_another_signature() {
        let (a, b) = (LinkSigner::new(b"a"), LinkSigner::new(b"b"));
        let (a, b) = (a.query("id", Scope::Read, 1), b.query("id", Scope::Read, 1));
        assert_ne!(a, b);
        assert!(a.starts_with("scope=read&exp=1&sig="));
    }
}
