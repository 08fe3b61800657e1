//! What all users of a log share, and its requests that concern one stream.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use redis::Value;
use tokio::time::timeout;
use unbraid_log::{End, LogError, LogStatus, Meta, StreamEnd, StreamId, internal::REPAIR_TIME};

use crate::{
    RedisOptions,
    background::Background,
    entry::{Content, Entry, EntryId, Header, array, foreign, integer, parse_fields, parse_id},
    error::Failure,
    hub::Hub,
    inbox::Inbox,
    keys::Keys,
    link::Link,
    script::{ERASE, OPEN, Request, SEAL_LOST, STATUS, Script},
};

/// How long a stream is kept that nobody seals, and how much longer its meta data is.
pub(crate) const DAY: Duration = Duration::from_secs(24 * 3600);

/// The answer to `PTTL` for a key that does not exist.
pub(crate) const NO_KEY: i64 = -2;

pub(crate) struct Inner {
    pub(crate) link: Link,
    pub(crate) keys: Keys,
    pub(crate) options: RedisOptions,
    pub(crate) warnings: Vec<String>,
    pub(crate) hub: Hub,
    pub(crate) inbox: Inbox,
    pub(crate) heartbeat: Background,
}

/// Limits a call of several requests, of which each has a limit of its own.
pub(crate) async fn within_a_second<T>(
    call: impl Future<Output = Result<T, LogError>>,
) -> Result<T, LogError> {
    let result = timeout(Duration::from_secs(1), call).await;
    result.unwrap_or_else(|_| Err(Failure::Timeout.into()))
}

/// Redis refuses a duration of zero.
pub(crate) fn millis(duration: Duration) -> u64 {
    let max = 1000 * DAY; // greater ones would overflow its clock
    u64::try_from(duration.min(max).as_millis()).map_or(1, |millis| millis.max(1))
}

/// How many milliseconds the meta data are kept. From that it is read whether a stream runs whose log or lease the server has
/// lost, so the time after the end has to be shorter than any of a stream that runs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MetaTtl {
    ttl: Duration,
    lease: Duration,
}

impl MetaTtl {
    pub(crate) fn new(options: &RedisOptions) -> Self {
        /// With the days that are added, it is still below the limit of `millis`.
        const LONGEST: Duration = Duration::from_secs(900 * DAY.as_secs());
        Self {
            ttl: options.ttl.min(LONGEST),
            lease: options.lease,
        }
    }

    /// After the end.
    fn ended(self) -> u64 {
        millis(self.ttl + DAY)
    }

    /// After a renewal of the lease. More are of another configuration, and show nothing.
    pub(crate) fn running(self) -> u64 {
        millis(self.ttl + 2 * DAY)
    }

    /// The least of a stream whose lease was renewed within this many leases.
    pub(crate) fn renewed_within(self, leases: u32) -> u64 {
        self.running().saturating_sub(millis(leases * self.lease))
    }

    /// The same for a producer that lives, which may be late.
    pub(crate) fn alive(self) -> u64 {
        self.renewed_within(2)
    }

    /// Whether a stream whose log does not exist is over, if this is the answer to `PTTL` for its meta data. Otherwise the server
    /// has lost the log, and its producer writes it again; see `lua/prelude.lua`.
    pub(crate) fn is_over(self, ttl: i64) -> bool {
        let of_running = self.alive()..=self.running();
        ttl != NO_KEY && !of_running.contains(&u64::try_from(ttl).unwrap_or(0))
    }
}

/// The status of a stream, and what its log says beside it.
pub(crate) struct Found {
    pub(crate) status: LogStatus,
    pub(crate) has_lease: bool,
    /// Whether the server has lost the log of a stream that runs.
    is_lost: bool,
    /// The gateway that produces it.
    pub(crate) gateway: Option<String>,
}

impl Found {
    fn new(status: LogStatus) -> Self {
        Self {
            status,
            has_lease: false,
            is_lost: false,
            gateway: None,
        }
    }
}

impl Inner {
    pub(crate) fn meta_ttl(&self) -> MetaTtl {
        MetaTtl::new(&self.options)
    }

    pub(crate) fn request(&self, script: &'static Script, id: &StreamId) -> Request {
        Request::script(script, &self.keys.stream(id).all())
    }

    /// The same, with the arguments by which a script creates the stream.
    pub(crate) fn creating_request(
        &self,
        script: &'static Script,
        id: &StreamId,
        meta: &[u8],
        nonce: &str,
    ) -> Request {
        self.request(script, id)
            .arg(self.keys.gateway())
            .arg(millis(self.options.lease))
            .arg(meta)
            .arg(millis(DAY))
            .arg(self.meta_ttl().running())
            .arg(nonce)
    }

    /// The arguments with which a script seals a log.
    pub(crate) fn seal_args(&self, request: Request, end: &StreamEnd) -> Request {
        let meta_ttl = self.meta_ttl();
        request
            .arg(end.encode())
            .arg(millis(meta_ttl.ttl))
            .arg(meta_ttl.ended())
    }

    pub(crate) async fn create(
        &self,
        id: &StreamId,
        meta: &Meta,
        nonce: &str,
    ) -> Result<(), LogError> {
        let request = self.creating_request(&OPEN, id, &meta.encode(), nonce);
        let created = match self.link.call(&request).await {
            Err(Failure::Server(code)) if code == "OOM" => return Err(LogError::Full),
            created => created?,
        };
        if created != Value::Int(1) {
            return Err(LogError::Exists);
        }
        // After the stream: if this gateway dies between them, the claim expires soon. If it fails, the next renewal repeats it.
        if let Some(claim) = &meta.claim {
            let _kept = self.keep_claim(claim, id, DAY).await;
        }
        Ok(())
    }

    pub(crate) async fn find(&self, id: &StreamId) -> Result<Found, LogError> {
        match self.find_any(id).await? {
            // Its producer writes it again, or is dead: then it is expired soon.
            found if found.is_lost => Err(LogError::unavailable("the server has lost the log")),
            found => Ok(found),
        }
    }

    /// The same for a log that the server has lost while its stream runs, too.
    async fn find_any(&self, id: &StreamId) -> Result<Found, LogError> {
        let value = self.link.call(&self.request(&STATUS, id)).await?;
        let Value::Array(mut parts) = value else {
            return Err(Failure::Answer.into());
        };
        let rest = parts.split_off(1.min(parts.len()));
        let meta = match parts.into_iter().next() {
            Some(Value::BulkString(meta)) => Arc::new(Meta::decode(&meta)?),
            // The meta data is kept longer than the log. Without it nobody knows who may read the stream.
            Some(Value::Nil) => return Ok(Found::new(LogStatus::Unknown)),
            _ => return Err(Failure::Answer.into()),
        };
        match rest.as_slice() {
            [ttl] => Ok(Found {
                is_lost: !self.meta_ttl().is_over(integer(ttl)?),
                ..Found::new(LogStatus::Expired { meta })
            }),
            _ => found(meta, rest),
        }
    }

    /// Whether producers may be about to write again what the server did not take, or has lost: it was started a moment ago,
    /// or this gateway had no answer from it.
    pub(crate) async fn may_lack_streams(&self) -> bool {
        if self.link.has_failed_within(REPAIR_TIME) {
            return true;
        }
        match self.link.may_be_new().await {
            Ok(is_new) => is_new,
            // A user may lack the permission.
            Err(Failure::Server(_)) => false,
            Err(_) => true,
        }
    }

    /// Asks the server regularly from now on, as long as the log exists.
    pub(crate) fn keep_in_contact(&self) {
        self.heartbeat
            .ensure(|| self.link.clone().keep_in_contact(self.keys.clone()));
    }

    /// Whether a lease that has expired proves that nobody renews it. While the server did not answer nobody could, and
    /// after that, or after its clock was moved, holders get the time: they renew within a third of a lease.
    pub(crate) fn may_judge(&self) -> bool {
        self.keep_in_contact();
        let lease = self.options.lease;
        self.link.has_answered_for(lease / 2) && !self.link.has_recovered_within(lease)
    }

    pub(crate) async fn seal_lost(&self, id: &StreamId) -> Result<LogStatus, LogError> {
        // First, because nothing is written into a log that this version cannot read.
        let mut found = self.find(id).await?;
        let is_running = matches!(found.status, LogStatus::Running { .. });
        if is_running && !found.has_lease && self.may_judge() {
            let lost = StreamEnd::new(End::ProducerLost);
            let request = self.seal_args(self.request(&SEAL_LOST, id), &lost);
            let request = request
                .arg(millis(self.options.lease))
                .arg(self.link.latest_time())
                .arg(self.meta_ttl().renewed_within(1))
                .arg(self.meta_ttl().running());
            self.link.call(&request).await?;
            found = self.find(id).await?;
        }
        self.end_claim_of_lost(id, &found.status).await;
        Ok(found.status)
    }

    /// Lets the claim of a lost stream end with it. Not in the script that seals it, because their keys share no hash slot.
    ///
    /// Each call repeats it: the one that has sealed the stream may have been interrupted. If it fails, the claim is free all
    /// the same once the stream has expired.
    async fn end_claim_of_lost(&self, id: &StreamId, status: &LogStatus) {
        if let LogStatus::Ended {
            meta, end, expires, ..
        } = status
            && end.end == End::ProducerLost
            && let Some(claim) = &meta.claim
        {
            let remaining = expires.duration_since(SystemTime::now());
            let _kept = self
                .keep_claim(claim, id, remaining.unwrap_or_default())
                .await;
        }
    }

    pub(crate) async fn erase(&self, id: &StreamId) -> Result<(), LogError> {
        let found = self.find_any(id).await?;
        // First, so that a repeated call finds it again after a failure.
        if let Some(claim) = found.status.meta().and_then(|meta| meta.claim.as_ref()) {
            self.release(claim, id).await?;
        }
        // Even without meta data, which the server may have lost.
        let request = self.request(&ERASE, id).arg(millis(DAY));
        self.link.call(&request).await?;
        Ok(())
    }
}

/// The status of a stream whose log exists.
fn found(meta: Arc<Meta>, log: Vec<Value>) -> Result<Found, LogError> {
    let [ttl, lease, header, id, fields] = array(Value::Array(log))?;
    let id = parse_id(id)?;
    let header = Entry::new(EntryId::HEADER, parse_fields(header)?)?;
    let gateway = match &header.content {
        Content::Header(header) => Some(gateway(header)?),
        _ => None,
    };
    // The script sends a record's name without its bytes.
    let last = match parse_fields(fields)? {
        fields if fields == ["r"] => None,
        fields => Some(Entry::new(id, fields)?.content),
    };
    let status = match last {
        None | Some(Content::Header(_)) => LogStatus::Running {
            meta,
            tail: id.tail()?,
        },
        Some(Content::Seal { end, tail }) => LogStatus::Ended {
            meta,
            tail,
            end: StreamEnd::decode(&end)?,
            expires: expiry(integer(&ttl)?),
        },
        Some(Content::Erased) => LogStatus::Expired { meta },
        Some(Content::Record(_) | Content::Foreign) => return Err(foreign("an entry of the log")),
    };
    Ok(Found {
        status,
        has_lease: lease == Value::Int(1),
        is_lost: false,
        gateway,
    })
}

fn gateway(header: &Header) -> Result<String, LogError> {
    if header.version != "1" {
        let text = std::str::from_utf8(&header.version).unwrap_or_default();
        let version = text.parse().unwrap_or(u8::MAX);
        return Err(LogError::UnsupportedVersion { version });
    }
    Ok(String::from_utf8_lossy(&header.gateway).into_owned())
}

/// The wall clock's time after this many milliseconds; the distant future for a key that does not expire.
fn expiry(ttl: i64) -> SystemTime {
    let ttl = u64::try_from(ttl).map_or(1000 * DAY, Duration::from_millis);
    SystemTime::now() + ttl
}
