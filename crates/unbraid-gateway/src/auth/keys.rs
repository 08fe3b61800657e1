//! The auth file: which keys exist, and whose they are.

use std::{
    collections::HashMap,
    fmt, fs,
    io::Read,
    path::{Path, PathBuf},
    sync::{Arc, PoisonError, RwLock},
};

use ring::{
    digest::{SHA256, digest},
    rand::{SecureRandom, SystemRandom},
};

use crate::{error::BuildError, limits::MAX_AUTH_FILE};

/// Who sent a request. A stream belongs to the principal that created it.
///
/// A gateway with an auth file takes it from the file. An application that mounts the gateway under its own
/// authentication inserts one into the extensions of each request; it then takes precedence, and the gateway neither
/// asks for a key nor checks `Host` and `Origin`.
///
/// # Examples
///
/// ```
/// use unbraid_gateway::Principal;
///
/// let mut request = http::Request::new(());
/// request.extensions_mut().insert(Principal::new("alice"));
/// assert_eq!(request.extensions().get::<Principal>().unwrap().name(), "alice");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Principal(Arc<str>);

impl Principal {
    /// Names a principal. Names are compared byte for byte, and appear in no log and no answer.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0
    }
}

/// A new key, and the line of the auth file that admits it.
///
/// The key has 256 random bits, so its hash in the file cannot be reversed, without any salt.
///
/// # Examples
///
/// ```
/// use unbraid_gateway::NewKey;
///
/// let key = NewKey::generate("alice")?;
/// assert!(key.line().starts_with("alice sha256:"));
/// assert!(!key.line().contains(key.key()));
/// assert!(NewKey::generate("two words").is_err());
/// # Ok::<(), unbraid_gateway::BuildError>(())
/// ```
pub struct NewKey {
    key: String,
    line: String,
}

impl NewKey {
    /// Generates a key for a principal.
    ///
    /// # Errors
    ///
    /// [`BuildError::Principal`] if the name is empty, or contains white space or `#`; [`BuildError::Random`] if the
    /// system has no random numbers.
    pub fn generate(name: &str) -> Result<Self, BuildError> {
        if !is_name(name) {
            return Err(BuildError::Principal);
        }
        let mut bytes = [0; 32];
        SystemRandom::new()
            .fill(&mut bytes)
            .map_err(|_| BuildError::Random)?;
        let key = format!("unbraid-{}", super::base64url(&bytes));
        let line = format!("{name} sha256:{}", hex(&hash(key.as_bytes())));
        Ok(Self { key, line })
    }

    /// Returns the key, which the client sends as `Authorization: Bearer`.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Returns the line for the auth file, which holds only the hash.
    #[must_use]
    pub fn line(&self) -> &str {
        &self.line
    }
}

impl fmt::Debug for NewKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewKey").finish_non_exhaustive()
    }
}

/// The keys of an auth file. `Debug` shows none of them.
pub(crate) struct KeyRing {
    path: PathBuf,
    keys: RwLock<Arc<[Key]>>,
}

#[derive(Clone)]
struct Key {
    principal: Principal,
    hash: [u8; 32],
}

impl KeyRing {
    pub(crate) fn read(path: &Path) -> Result<Self, BuildError> {
        Ok(Self {
            keys: RwLock::new(read_keys(path)?),
            path: path.to_owned(),
        })
    }

    /// Reads the file again. If that fails, the keys stay as they were.
    pub(crate) fn reload(&self) -> Result<(), BuildError> {
        let keys = read_keys(&self.path)?;
        match keys.len() {
            0 => tracing::warn!("the auth file has no keys: every request is refused"),
            count => tracing::info!(keys = count, "the auth file was read again"),
        }
        *self.keys.write().unwrap_or_else(PoisonError::into_inner) = keys;
        Ok(())
    }

    /// Finds the owner of a key. The time does not depend on which key it is, nor on how much of it is right.
    pub(crate) fn find(&self, key: &[u8]) -> Option<Principal> {
        let hash = hash(key);
        let keys = Arc::clone(&self.keys.read().unwrap_or_else(PoisonError::into_inner));
        let mut found = None;
        for key in keys.iter() {
            if super::equal(&key.hash, &hash) {
                found = Some(&key.principal);
            }
        }
        found.cloned()
    }
}

impl fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyRing").finish_non_exhaustive()
    }
}

fn read_keys(path: &Path) -> Result<Arc<[Key]>, BuildError> {
    let file_error = |error| BuildError::file(path, error);
    let mut text = String::new();
    fs::File::open(path)
        .map_err(file_error)?
        .take(MAX_AUTH_FILE)
        .read_to_string(&mut text)
        .map_err(file_error)?;
    let (mut keys, mut owners) = (Vec::new(), HashMap::new());
    for (index, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let key = parse_line(line).ok_or_else(|| BuildError::AuthFile {
            path: path.to_owned(),
            line: index + 1,
        })?;
        let owner = owners.insert(key.hash, key.principal.clone());
        if owner.is_some_and(|owner| owner != key.principal) {
            return Err(BuildError::SharedKey {
                path: path.to_owned(),
                line: index + 1,
            });
        }
        keys.push(key);
    }
    Ok(keys.into())
}

fn parse_line(line: &str) -> Option<Key> {
    let mut words = line.split_whitespace();
    let (name, hash) = (words.next()?, words.next()?.strip_prefix("sha256:")?);
    let hash = unhex(hash)?;
    (words.next().is_none() && is_name(name)).then(|| Key {
        principal: Principal::new(name),
        hash,
    })
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || c.is_control() || c == '#')
}

fn hash(bytes: &[u8]) -> [u8; 32] {
    let mut hash = [0; 32];
    hash.copy_from_slice(digest(&SHA256, bytes).as_ref());
    hash
}

/// The SHA-256 of a request's body, by which a repeated request is recognized.
pub(crate) fn fingerprint(bytes: &[u8]) -> [u8; 32] {
    hash(bytes)
}

fn hex(bytes: &[u8]) -> String {
    use fmt::Write;

    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing to a string does not fail.
        let _infallible: fmt::Result = write!(text, "{byte:02x}");
    }
    text
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn ring(text: &str) -> Result<KeyRing, BuildError> {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), text).unwrap();
        KeyRing::read(file.path())
    }

    #[test]
    fn a_key_belongs_to_the_name_on_its_line_and_a_name_may_have_several() {
        let (old, new) = (
            NewKey::generate("alice").unwrap(),
            NewKey::generate("alice").unwrap(),
        );
        let bob = NewKey::generate("bob").unwrap();
        let text = format!(
            "# rotation\n{}\n\n  {} # new\n{}\n",
            old.line(),
            new.line(),
            bob.line()
        );
        let ring = ring(&text).unwrap();
        for (key, name) in [(&old, "alice"), (&new, "alice"), (&bob, "bob")] {
            assert_eq!(ring.find(key.key().as_bytes()).unwrap().name(), name);
        }
        assert_eq!(ring.find(b""), None);
        assert_eq!(ring.find(&bob.key().as_bytes()[1..]), None);
    }

    #[test]
    fn a_line_that_is_not_a_key_is_refused_with_its_number() {
        let hash = "0".repeat(64);
        for line in [
            "alice".to_owned(),
            format!("alice md5:{hash}"),
            format!("alice sha256:{}", &hash[1..]),
            format!("alice sha256:+{}", &hash[1..]),
            format!("alice sha256:{hash} extra"),
        ] {
            let error = ring(&format!("\n{line}\n")).unwrap_err();
            assert!(
                matches!(error, BuildError::AuthFile { line: 2, .. }),
                "{line}: {error}"
            );
        }
    }

    #[test]
    fn a_key_of_two_names_is_refused() {
        let hash = "0".repeat(64);
        let error = ring(&format!("alice sha256:{hash}\n\nbob sha256:{hash}\n")).unwrap_err();
        assert!(
            matches!(error, BuildError::SharedKey { line: 3, .. }),
            "{error}"
        );
        let twice = format!("alice sha256:{hash}\nalice sha256:{hash}\n");
        assert!(ring(&twice).is_ok());
    }

    #[test]
    fn a_reload_that_fails_keeps_the_keys() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let key = NewKey::generate("a").unwrap();
        fs::write(file.path(), key.line()).unwrap();
        let ring = KeyRing::read(file.path()).unwrap();
        fs::write(file.path(), "nonsense").unwrap();
        assert!(ring.reload().is_err());
        assert!(ring.find(key.key().as_bytes()).is_some());
        fs::write(file.path(), "").unwrap();
        ring.reload().unwrap();
        assert!(ring.find(key.key().as_bytes()).is_none());
    }
}
