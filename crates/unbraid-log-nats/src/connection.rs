//! The connection to NATS: how it is made, checked, and watched.

use std::{
    future::pending,
    hash::{DefaultHasher, Hash, Hasher},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_nats::{Client, ConnectOptions, Event, ServerAddr};
use percent_encoding::percent_decode_str;
use tokio::{
    sync::watch,
    time::{Instant, timeout},
};

use crate::{
    NatsError, NatsOptions, api::Failure, contact::Contact, permissions::Refusal,
    publishers::Publishers, tls,
};

/// A subscription holds at most this many messages: a reader that is slower finds the others in the stream.
pub(crate) const SUBSCRIPTION_CAPACITY: usize = 256;

/// A server that does not answer for two of these intervals is given up, and connected to again.
const PING: Duration = Duration::from_secs(2);

/// How long a call waits for a connection that is just being made again.
const RECONNECT: Duration = Duration::from_millis(500);

/// The longest time between two attempts to connect again. A lease is counted from the first answer after an outage, so it
/// delays the end of a lost stream.
const MAX_DELAY: Duration = Duration::from_millis(250);

/// The largest message: a record of 512 KiB, its header, and the headers of the message.
const MAX_MESSAGE: usize = unbraid_log::MAX_PAYLOAD_BYTES + 64 * 1024;

/// The state of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Link {
    /// How often the connection was made.
    pub(crate) epoch: u64,
    pub(crate) is_up: bool,
}

/// A connection that is made again whenever it fails.
#[derive(Debug, Clone)]
pub(crate) struct Connection {
    pub(crate) client: Client,
    pub(crate) publishers: Arc<Publishers>,
    link: watch::Receiver<Link>,
    contact: Arc<Mutex<Contact>>,
    /// The last thing for which the user lacks a permission.
    refusal: watch::Receiver<Option<Refusal>>,
}

impl Connection {
    /// Connects once, and checks that the server can keep a log.
    pub(crate) async fn open(
        url: &str,
        options: &NatsOptions,
        gateway: &str,
    ) -> Result<Self, NatsError> {
        let Target { addresses, login } = Target::parse(url)?;
        let (sender, link) = watch::channel(Link {
            epoch: 0,
            is_up: true,
        });
        let contact = Arc::new(Mutex::new(Contact::new(options.lease)));
        let noted = Arc::clone(&contact);
        let (refusals, refusal) = watch::channel(None);
        let mut connect = ConnectOptions::new()
            .name(format!("unbraid {gateway}"))
            .connection_timeout(Duration::from_secs(2))
            .ping_interval(PING)
            .subscription_capacity(SUBSCRIPTION_CAPACITY)
            .reconnect_delay_callback(delay);
        connect = match login {
            Login::None => connect,
            Login::Token(token) => connect.token(token),
            Login::User(user, password) => connect.user_and_password(user, password),
        };
        if let Some(file) = &options.credentials {
            let read = connect.credentials_file(file).await;
            connect = read.map_err(|error| NatsError::Unauthorized {
                reason: format!("the file of the credentials cannot be read: {error}"),
            })?;
        }
        if let Some(pem) = &options.root_certificates {
            connect = connect.tls_client_config(tls::config(pem)?);
        }
        let publishers = Publishers::new(connect.clone(), addresses.clone());
        let connect = connect.event_callback(move |event| {
            note(&sender, &noted, &event);
            if let Some(refusal) = Refusal::of(&event) {
                refusals.send_replace(Some(refusal));
            }
            std::future::ready(())
        });
        let client = connect.connect(addresses).await?;
        check(&client)?;
        let connection = Self {
            client,
            publishers: Arc::new(publishers),
            link,
            contact,
            refusal,
        };
        connection.contact().see(connection.server());
        Ok(connection)
    }

    /// The state, and its changes.
    pub(crate) fn link(&self) -> watch::Receiver<Link> {
        self.link.clone()
    }

    /// What the server has refused last for want of a permission.
    pub(crate) fn refusal(&self) -> Option<Refusal> {
        self.refusal.borrow().clone()
    }

    /// Waits until the server refuses something for want of a permission.
    pub(crate) async fn refused(&self) -> Refusal {
        let mut refusal = self.refusal.clone();
        let found = refusal.wait_for(Option::is_some).await;
        match found.ok().and_then(|found| found.clone()) {
            Some(refusal) => refusal,
            None => pending().await,
        }
    }

    /// Which process the server is. One that was started again has another number.
    pub(crate) fn server(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.client.server_info().server_id.hash(&mut hasher);
        hasher.finish()
    }

    /// How often the connection was made.
    pub(crate) fn epoch(&self) -> u64 {
        self.link.borrow().epoch
    }

    fn contact(&self) -> MutexGuard<'_, Contact> {
        lock(&self.contact)
    }

    /// Notes an answer of the server.
    pub(crate) fn answered(&self) {
        self.contact().answered();
    }

    /// Notes that the server has stored a value, and when it was asked to on this connection.
    pub(crate) fn stored_value(&self, asked: Instant) {
        let epoch = self.epoch();
        let mut contact = self.contact();
        contact.presence.stored(asked, epoch, || self.server());
    }

    /// Since when the server has stored values without a silence in which producers could not renew their leases.
    pub(crate) fn present_since(&self) -> Instant {
        self.contact().presence.since()
    }

    /// Whether the server was away a moment ago, so that producers may be about to write what it lacks.
    pub(crate) fn may_lack_streams(&self) -> bool {
        let server = self.server();
        let mut contact = self.contact();
        contact.see(server);
        contact.may_lack_streams()
    }

    /// Waits briefly until the server is connected. Without this, the client would keep a request, and send it when nobody
    /// waits for it any more.
    pub(crate) async fn ready(&self) -> Result<(), Failure> {
        if self.link.borrow().is_up {
            return Ok(());
        }
        let mut link = self.link.clone();
        match timeout(RECONNECT, link.wait_for(|link| link.is_up)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(Failure::Unavailable(
                "the connection to NATS is lost".to_owned(),
            )),
        }
    }
}

fn lock(contact: &Mutex<Contact>) -> MutexGuard<'_, Contact> {
    // Every change is complete before anything that could panic.
    contact.lock().unwrap_or_else(PoisonError::into_inner)
}

fn note(sender: &watch::Sender<Link>, contact: &Mutex<Contact>, event: &Event) {
    match event {
        Event::Connected => {
            lock(contact).connected();
            sender.send_modify(|link| {
                link.epoch += 1;
                link.is_up = true;
            });
        }
        Event::Disconnected | Event::Closed => {
            lock(contact).lost();
            sender.send_modify(|link| link.is_up = false);
        }
        _ => {}
    }
    tracing::debug!(%event, "NATS");
}

/// How long to wait before an attempt to connect again.
fn delay(attempt: usize) -> Duration {
    if attempt <= 1 {
        return Duration::ZERO;
    }
    let doubled = u32::try_from(attempt).unwrap_or(u32::MAX).min(5);
    Duration::from_millis(10 * 2_u64.pow(doubled)).min(MAX_DELAY)
}

/// The servers of a URL, and how this client identifies itself to them.
struct Target {
    addresses: Vec<ServerAddr>,
    login: Login,
}

#[derive(PartialEq, Eq)]
enum Login {
    None,
    Token(String),
    User(String, String),
}

impl Target {
    /// Reads a URL; several are separated by commas. Of several logins the first counts.
    fn parse(url: &str) -> Result<Self, NatsError> {
        let mut target = Self {
            addresses: Vec::new(),
            login: Login::None,
        };
        for part in url.split(',') {
            let (address, login) = parse_address(part.trim())?;
            target.addresses.push(address);
            if target.login == Login::None {
                target.login = login;
            }
        }
        Ok(target)
    }
}

/// Separates the login from an address: the client neither uses nor hides one that is part of it.
fn parse_address(text: &str) -> Result<(ServerAddr, Login), NatsError> {
    let invalid = |reason| NatsError::InvalidUrl { reason };
    let scheme = text.split_once("://").map_or("nats", |(scheme, _)| scheme);
    if !["nats", "tls"].contains(&scheme) {
        return Err(invalid("it begins with neither nats:// nor tls://"));
    }
    // Its error would repeat the address, which may contain a password.
    let malformed = || invalid("it is not nats://HOST:PORT");
    let address: ServerAddr = text.parse().map_err(|_| malformed())?;
    if address.host().is_empty() {
        return Err(invalid("it has no host"));
    }
    let decode = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let login = match (address.username(), address.password()) {
        (Some(user), Some(password)) => Login::User(decode(user), decode(password)),
        (Some(token), None) => Login::Token(decode(token)),
        (None, _) => Login::None,
    };
    let mut url = address.into_inner();
    let removed = url.set_username("").and_then(|()| url.set_password(None));
    removed.map_err(|()| malformed())?;
    let address = ServerAddr::from_url(url).map_err(|_| malformed())?;
    Ok((address, login))
}

fn check(client: &Client) -> Result<(), NatsError> {
    let info = client.server_info();
    if !is_at_least_2_9(&info.version) {
        return Err(NatsError::TooOld {
            version: info.version,
        });
    }
    if info.max_payload < MAX_MESSAGE {
        return Err(NatsError::SmallPayload {
            bytes: info.max_payload,
            needed: MAX_MESSAGE,
        });
    }
    Ok(())
}

fn is_at_least_2_9(version: &str) -> bool {
    let mut numbers = version
        .split(['.', '-', '+'])
        .map_while(|part| part.parse::<u64>().ok());
    let (major, minor) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    (major, minor) >= (2, 9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        for version in ["2.9.0", "2.10.7", "2.12.1-RC.2", "3.0.0", "2.9"] {
            assert!(is_at_least_2_9(version), "{version}");
        }
        for version in ["2.8.4", "1.99.0", "", "x", "2.x"] {
            assert!(!is_at_least_2_9(version), "{version}");
        }
    }

    #[test]
    fn only_addresses_of_nats_are_accepted() {
        for url in ["nats://a:1", "tls://a", "a:4222", "nats://u:p@a,nats://b"] {
            assert!(Target::parse(url).is_ok(), "{url}");
        }
        for url in [
            "http://a",
            "redis://a",
            "",
            "nats://",
            "nats://u:secret@:x",
            "nats://a,",
        ] {
            let error = Target::parse(url).err().unwrap();
            assert!(matches!(error, NatsError::InvalidUrl { .. }), "{url}");
            assert!(!error.to_string().contains("secret"));
        }
    }

    #[test]
    fn a_login_is_taken_out_of_the_address() {
        let target = Target::parse("nats://u%40x:s%2Fcret@a:1,nats://b")
            .ok()
            .unwrap();
        let user = Login::User("u@x".to_owned(), "s/cret".to_owned());
        assert!(target.login == user);
        assert!(!format!("{:?}", target.addresses).contains("cret"));
        let target = Target::parse("tls://t0ken@a").ok().unwrap();
        assert!(target.login == Login::Token("t0ken".to_owned()));
    }

    #[test]
    fn attempts_to_connect_are_spread() {
        assert_eq!(delay(1), Duration::ZERO);
        assert!(delay(2) < delay(4) && delay(4) < MAX_DELAY);
        assert_eq!(delay(1_000_000), MAX_DELAY);
    }
}
