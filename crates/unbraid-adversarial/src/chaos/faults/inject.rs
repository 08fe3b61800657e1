//! Injects faults, and notes them in the history.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures::future::join_all;
use hyper::Method;
use tokio::{
    sync::Mutex as Lock,
    time::{Instant, sleep, sleep_until},
};
use unbraid_testkit::cut::Rng;

use super::{Fault, FaultKind};
use crate::chaos::{
    CannotRun,
    broker::Broker,
    client,
    gateways::{Gateways, Restart},
    history::{Away, History, Outage},
    streams::Streams,
    upstream::Upstream,
};

/// Injects the faults of a round.
#[derive(Debug)]
pub(in crate::chaos) struct Injector<'a> {
    pub(in crate::chaos) gateways: &'a Gateways,
    pub(in crate::chaos) broker: Option<&'a Broker>,
    pub(in crate::chaos) upstream: &'a Upstream,
    pub(in crate::chaos) history: &'a Arc<History>,
    pub(in crate::chaos) streams: &'a Streams,
    pub(in crate::chaos) done: &'a Mutex<BTreeMap<FaultKind, usize>>,
    pub(in crate::chaos) lease: Duration,
    /// One fault at a time for the broker, and for each gateway.
    pub(in crate::chaos) locks: &'a Locks,
}

/// What is busy with a fault.
#[derive(Debug)]
pub(in crate::chaos) struct Locks {
    broker: Lock<()>,
    gateways: Vec<Lock<()>>,
}

impl Locks {
    pub(in crate::chaos) fn new(gateways: usize) -> Self {
        Self {
            broker: Lock::default(),
            gateways: (0..gateways).map(|_| Lock::default()).collect(),
        }
    }
}

impl Injector<'_> {
    /// Injects all faults at their times, and returns when everything works again.
    pub(in crate::chaos) async fn run(
        &self,
        faults: &[Fault],
        start: Instant,
    ) -> Result<(), CannotRun> {
        let faults = faults.iter().map(|fault| async move {
            sleep_until(start + fault.at).await;
            self.inject(*fault).await
        });
        join_all(faults).await.into_iter().collect()
    }

    async fn inject(&self, fault: Fault) -> Result<(), CannotRun> {
        use FaultKind as F;
        let slot = fault.target % self.gateways.len();
        let is_injected = match fault.kind {
            F::GatewayKill => self.kill_gateway(slot, fault, Restart::default()).await?,
            F::GatewayKillNewPort => {
                self.kill_gateway(
                    slot,
                    fault,
                    Restart {
                        new_port: true,
                        ..Restart::default()
                    },
                )
                .await?
            }
            F::GatewayClock => {
                let clock_hours = if fault.target & 1 == 0 { 1 } else { -1 };
                self.kill_gateway(
                    slot,
                    fault,
                    Restart {
                        clock_hours,
                        ..Restart::default()
                    },
                )
                .await?
            }
            F::GatewayStopShort | F::GatewayStopLong => self.suspend_gateway(slot, fault).await,
            F::BrokerKill | F::BrokerKillLong => self.kill_broker(fault, Outage::Down).await?,
            F::BrokerKillEmpty => self.kill_broker(fault, Outage::Emptied).await?,
            F::DiskFull => self.fill_disk(fault).await?,
            F::BrokerStop => self.suspend_broker(fault).await,
            F::BrokerSlow => self.slow_broker(fault).await,
            F::PartitionShort | F::PartitionLong => self.partition(slot, fault).await,
            F::Cut | F::CutEach3s => self.cut(fault).await,
            F::CancelChoice | F::CancelAll | F::Erase => self.request(fault).await,
        };
        if is_injected {
            *self
                .done
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .entry(fault.kind)
                .or_default() += 1;
        }
        Ok(())
    }

    async fn kill_gateway(
        &self,
        slot: usize,
        fault: Fault,
        restart: Restart,
    ) -> Result<bool, CannotRun> {
        let Some(lock) = self.locks.gateways.get(slot) else {
            return Ok(false);
        };
        let _busy = lock.lock().await;
        let gateway = self.gateways.id(slot);
        self.gateways.kill(slot).await;
        self.history.killed(gateway);
        sleep(fault.length).await;
        self.gateways.start(slot, self.upstream, restart).await?;
        self.history.started(slot);
        Ok(true)
    }

    async fn suspend_gateway(&self, slot: usize, fault: Fault) -> bool {
        let Some(lock) = self.locks.gateways.get(slot) else {
            return false;
        };
        let _busy = lock.lock().await;
        let token = self.history.away(self.gateways.id(slot), Away::Suspended);
        self.gateways.suspend(slot).await;
        sleep(fault.length).await;
        self.gateways.resume(slot).await;
        self.history.back(token);
        true
    }

    async fn kill_broker(&self, fault: Fault, outage: Outage) -> Result<bool, CannotRun> {
        let Some(broker) = self.broker else {
            return Ok(false);
        };
        let _busy = self.locks.broker.lock().await;
        let token = self.history.outage(outage);
        broker.kill().await;
        if outage == Outage::Emptied {
            broker.empty();
        }
        sleep(fault.length).await;
        broker.restart().await?;
        self.history.outage_over(token);
        Ok(true)
    }

    /// A broker may exit or refuse all writes once its disk is full, so it is started again once there is space.
    async fn fill_disk(&self, fault: Fault) -> Result<bool, CannotRun> {
        let Some(broker) = self.broker else {
            return Ok(false);
        };
        let _busy = self.locks.broker.lock().await;
        let token = self.history.outage(Outage::Down);
        let full = broker.fill_disk();
        sleep(fault.length).await;
        broker.kill().await;
        drop(full);
        broker.restart().await?;
        self.history.outage_over(token);
        Ok(true)
    }

    async fn suspend_broker(&self, fault: Fault) -> bool {
        let Some(broker) = self.broker else {
            return false;
        };
        let _busy = self.locks.broker.lock().await;
        let token = self.history.outage(Outage::Down);
        broker.suspend().await;
        sleep(fault.length).await;
        broker.resume().await;
        self.history.outage_over(token);
        true
    }

    async fn slow_broker(&self, fault: Fault) -> bool {
        let delay = self.lease / 3;
        let _busy = self.locks.broker.lock().await;
        let token = self.history.outage(Outage::Down);
        self.gateways.proxies().for_each(|proxy| proxy.delay(delay));
        sleep(fault.length).await;
        self.gateways
            .proxies()
            .for_each(|proxy| proxy.delay(Duration::ZERO));
        // What the broker has sent before still arrives late.
        sleep(delay).await;
        self.history.outage_over(token);
        true
    }

    /// The network loses every packet, or refuses every connection.
    async fn partition(&self, slot: usize, fault: Fault) -> bool {
        let (Some(lock), Some(proxy)) = (self.locks.gateways.get(slot), self.gateways.proxy(slot))
        else {
            return false;
        };
        let _busy = lock.lock().await;
        let token = self.history.away(self.gateways.id(slot), Away::Partitioned);
        let is_silent = fault.target & 256 == 0;
        match is_silent {
            true => proxy.hold(true),
            false => proxy.refuse(true),
        }
        sleep(fault.length).await;
        match is_silent {
            true => proxy.hold(false),
            false => proxy.refuse(false),
        }
        self.history.back(token);
        true
    }

    async fn cut(&self, fault: Fault) -> bool {
        let token = self.history.outage(Outage::Cuts);
        if fault.kind == FaultKind::Cut {
            self.gateways.proxies().for_each(|proxy| proxy.cut());
        } else {
            let age = Some(Duration::from_secs(3));
            self.gateways
                .proxies()
                .for_each(|proxy| proxy.cut_after(age));
            sleep(fault.length).await;
            self.gateways
                .proxies()
                .for_each(|proxy| proxy.cut_after(None));
        }
        self.history.outage_over(token);
        true
    }

    /// Cancels or erases a stream, through any gateway.
    async fn request(&self, fault: Fault) -> bool {
        let mut rng = Rng::new(fault.target as u64);
        let Some(stream) = self.streams.random_open(&mut rng) else {
            return false;
        };
        let Some(id) = stream.id() else { return false };
        let answer = &stream.answer;
        let choice = rng.below(answer.choices as usize) as u32;
        let (method, path) = match fault.kind {
            FaultKind::CancelChoice => {
                self.history.cancel(answer.number, [choice]);
                (Method::DELETE, format!("/v1/streams/{id}/choices/{choice}"))
            }
            kind => {
                self.history.cancel(answer.number, 0..answer.choices);
                match kind {
                    FaultKind::Erase => {
                        self.history.erase(answer.number);
                        (Method::DELETE, format!("/v1/streams/{id}"))
                    }
                    _ => (Method::POST, format!("/v1/streams/{id}/cancel")),
                }
            }
        };
        let address = self.gateways.address(rng.below(self.gateways.len()));
        // It may fail: whether it was carried out shows in what the readers get.
        client::send(address, method, &path, &[], String::new())
            .await
            .is_ok()
    }
}
