//! `WAIT`, once for many writers.
//!
//! `WAIT` holds back all other requests of its connection, and it covers everything that was written on it. So one is in flight
//! at a time, and the writers that arrive meanwhile share the next one.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use futures::{
    FutureExt,
    future::{BoxFuture, Shared},
};
use redis::{Value, cmd};

use super::Live;
use crate::error::Failure;

/// How long the replicas may take.
const REPLICATION_MS: u64 = 50;

type Confirmation = Shared<BoxFuture<'static, Result<i64, Failure>>>;

#[derive(Default)]
pub(super) struct Confirmations(Mutex<Option<Latest>>);

struct Latest {
    /// Whether its `WAIT` was sent, so that later writes are not covered.
    is_sent: Arc<AtomicBool>,
    confirmation: Confirmation,
}

impl Confirmations {
    /// How many replicas have everything that was written before this call.
    pub(super) fn next(&self, live: &Arc<Live>, replicas: u32) -> Confirmation {
        let mut latest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let previous = match latest.take() {
            Some(open) if !open.is_sent.load(Ordering::Acquire) => {
                let confirmation = open.confirmation.clone();
                *latest = Some(open);
                return confirmation;
            }
            previous => previous.map(|previous| previous.confirmation),
        };
        let is_sent = Arc::new(AtomicBool::new(false));
        let confirmation = {
            let (is_sent, live) = (Arc::clone(&is_sent), Arc::downgrade(live));
            async move {
                if let Some(previous) = previous {
                    // Whatever it has found, it does not hold back the connection any more.
                    let _confirmed = previous.await;
                }
                is_sent.store(true, Ordering::Release);
                // Its callers hold the connection.
                let live = live.upgrade().ok_or(Failure::Timeout)?;
                match live
                    .query(cmd("WAIT").arg(replicas).arg(REPLICATION_MS))
                    .await?
                {
                    Value::Int(confirmed) => Ok(confirmed),
                    _ => Err(Failure::Answer),
                }
            }
        };
        let confirmation = confirmation.boxed().shared();
        *latest = Some(Latest {
            is_sent,
            confirmation: confirmation.clone(),
        });
        confirmation
    }
}
