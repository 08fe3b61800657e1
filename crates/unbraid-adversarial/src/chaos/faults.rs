//! Which faults a round has, and when: decided by the seed.

mod inject;

use std::time::Duration;

pub(super) use inject::{Injector, Locks};
use unbraid_testkit::cut::Rng;

use super::LogKind;

/// A kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum FaultKind {
    GatewayKill,
    GatewayKillNewPort,
    GatewayClock,
    GatewayStopShort,
    GatewayStopLong,
    BrokerKill,
    BrokerKillEmpty,
    BrokerKillLong,
    BrokerStop,
    BrokerSlow,
    DiskFull,
    PartitionShort,
    PartitionLong,
    Cut,
    CutEach3s,
    CancelChoice,
    CancelAll,
    Erase,
}

/// What a fault affects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Area {
    Gateways,
    Broker,
    Network,
    Clients,
}

/// Which faults a round may have. A round with few of them permits fewer excuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Theme {
    Gateways,
    Broker,
    Network,
    Mixed,
}

/// A fault of a round.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fault {
    pub(super) kind: FaultKind,
    pub(super) at: Duration,
    /// How long it lasts.
    pub(super) length: Duration,
    /// The gateway or the stream that it concerns, in any range.
    pub(super) target: usize,
}

impl FaultKind {
    pub(super) const ALL: [Self; 18] = [
        Self::GatewayKill,
        Self::GatewayKillNewPort,
        Self::GatewayClock,
        Self::GatewayStopShort,
        Self::GatewayStopLong,
        Self::BrokerKill,
        Self::BrokerKillEmpty,
        Self::BrokerKillLong,
        Self::BrokerStop,
        Self::BrokerSlow,
        Self::DiskFull,
        Self::PartitionShort,
        Self::PartitionLong,
        Self::Cut,
        Self::CutEach3s,
        Self::CancelChoice,
        Self::CancelAll,
        Self::Erase,
    ];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::GatewayKill => "gateway killed",
            Self::GatewayKillNewPort => "gateway killed, new port",
            Self::GatewayClock => "gateway killed, clock an hour off",
            Self::GatewayStopShort => "gateway suspended within its lease",
            Self::GatewayStopLong => "gateway suspended past its lease",
            Self::BrokerKill => "broker killed",
            Self::BrokerKillEmpty => "broker killed and emptied",
            Self::BrokerKillLong => "broker killed, down past the lease",
            Self::BrokerStop => "broker suspended",
            Self::BrokerSlow => "broker answers after a third of the lease",
            Self::DiskFull => "broker's disk full, then killed",
            Self::PartitionShort => "gateway partitioned within its lease",
            Self::PartitionLong => "gateway partitioned past its lease",
            Self::Cut => "all connections cut",
            Self::CutEach3s => "each connection cut at 3 s",
            Self::CancelChoice => "choice cancelled",
            Self::CancelAll => "stream cancelled",
            Self::Erase => "stream erased",
        }
    }

    /// Whether a process is killed with SIGKILL.
    pub(super) fn is_kill(self) -> bool {
        matches!(
            self,
            Self::GatewayKill
                | Self::GatewayKillNewPort
                | Self::GatewayClock
                | Self::BrokerKill
                | Self::BrokerKillEmpty
                | Self::BrokerKillLong
                | Self::DiskFull
        )
    }

    fn area(self) -> Area {
        match self {
            Self::GatewayKill
            | Self::GatewayKillNewPort
            | Self::GatewayClock
            | Self::GatewayStopShort
            | Self::GatewayStopLong => Area::Gateways,
            Self::BrokerKill
            | Self::BrokerKillEmpty
            | Self::BrokerKillLong
            | Self::BrokerStop
            | Self::BrokerSlow
            | Self::DiskFull => Area::Broker,
            Self::PartitionShort | Self::PartitionLong | Self::Cut | Self::CutEach3s => {
                Area::Network
            }
            Self::CancelChoice | Self::CancelAll | Self::Erase => Area::Clients,
        }
    }

    /// How often it occurs, compared with the others.
    fn weight(self) -> usize {
        match self {
            Self::GatewayKill | Self::BrokerKill => 24,
            Self::BrokerKillEmpty => 10,
            Self::GatewayKillNewPort | Self::CancelChoice => 8,
            Self::Cut | Self::GatewayStopShort | Self::GatewayStopLong | Self::PartitionShort => 5,
            Self::BrokerKillLong
            | Self::BrokerStop
            | Self::BrokerSlow
            | Self::PartitionLong
            | Self::CutEach3s
            | Self::CancelAll => 4,
            Self::GatewayClock | Self::DiskFull | Self::Erase => 3,
        }
    }

    fn length(self, lease: Duration, rng: &mut Rng) -> Duration {
        let between = |low: Duration, high: Duration, rng: &mut Rng| {
            let range = high.saturating_sub(low).as_millis() as usize;
            low + Duration::from_millis(rng.below(range + 1) as u64)
        };
        let second = Duration::from_secs(1);
        match self {
            Self::GatewayKill
            | Self::GatewayKillNewPort
            | Self::GatewayClock
            | Self::BrokerKill
            | Self::BrokerKillEmpty => between(Duration::ZERO, second, rng),
            // Together with the third of a lease between two renewals it stays below the lease.
            Self::GatewayStopShort | Self::PartitionShort => between(lease / 20, lease / 3, rng),
            Self::GatewayStopLong | Self::PartitionLong | Self::BrokerKillLong => {
                between(lease + second, lease + 3 * second, rng)
            }
            Self::BrokerStop | Self::DiskFull => between(second / 2, 2 * second, rng),
            // Together with the delay, which is a third of the lease, it stays below the lease.
            Self::BrokerSlow => between(lease / 6, lease / 3, rng),
            Self::CutEach3s => between(3 * second, 7 * second, rng),
            Self::Cut | Self::CancelChoice | Self::CancelAll | Self::Erase => Duration::ZERO,
        }
    }
}

/// What this machine and this log can have.
#[derive(Debug, Clone, Copy)]
pub(super) struct Possible {
    pub(super) log: LogKind,
    pub(super) disk: bool,
    pub(super) clock: bool,
}

impl Possible {
    pub(super) fn has(&self, kind: FaultKind) -> bool {
        let has_broker = self.log.broker().is_some();
        match kind {
            FaultKind::DiskFull => has_broker && self.disk,
            FaultKind::GatewayClock => self.clock,
            kind => match kind.area() {
                Area::Broker | Area::Network => has_broker,
                Area::Gateways | Area::Clients => true,
            },
        }
    }
}

/// How long faults begin after the start of a round, in milliseconds.
const SPREAD_MS: usize = 7_500;

impl Theme {
    fn choose(log: LogKind, rng: &mut Rng) -> Self {
        if log.broker().is_none() {
            return Self::Gateways;
        }
        match rng.below(20) {
            0..7 => Self::Gateways,
            7..12 => Self::Broker,
            12..14 => Self::Network,
            _ => Self::Mixed,
        }
    }

    fn has(self, area: Area) -> bool {
        match self {
            Self::Mixed => true,
            Self::Gateways => matches!(area, Area::Gateways | Area::Clients),
            Self::Broker => matches!(area, Area::Broker | Area::Clients),
            Self::Network => matches!(area, Area::Network | Area::Clients),
        }
    }
}

/// The faults of a round, in the order of their times. At most so many of them are kills.
pub(super) fn plan(
    possible: Possible,
    kills: usize,
    lease: Duration,
    rng: &mut Rng,
) -> (Theme, Vec<Fault>) {
    let theme = Theme::choose(possible.log, rng);
    let kinds = FaultKind::ALL
        .into_iter()
        .filter(|&kind| possible.has(kind) && theme.has(kind.area()));
    let kinds: Vec<_> = kinds
        .flat_map(|kind| std::iter::repeat_n(kind, kind.weight()))
        .collect();
    let mut faults = Vec::new();
    let mut killed = 0;
    for _ in 0..6 + rng.below(14) {
        let Some(&kind) = kinds.get(rng.below(kinds.len())) else {
            break;
        };
        if kind.is_kill() && killed == kills {
            continue;
        }
        killed += usize::from(kind.is_kill());
        let at = Duration::from_millis(300 + rng.below(SPREAD_MS) as u64);
        faults.push(Fault {
            kind,
            at,
            length: kind.length(lease, rng),
            target: rng.below(1 << 16),
        });
    }
    faults.sort_by_key(|fault| fault.at);
    (theme, faults)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(5);

    fn possible(log: LogKind) -> Possible {
        Possible {
            log,
            disk: true,
            clock: true,
        }
    }

    #[test]
    fn a_plan_depends_on_the_seed_and_contains_each_kind_sooner_or_later() {
        let mut rng = Rng::new(1);
        let mut missing = FaultKind::ALL.to_vec();
        for _ in 0..100 {
            let (_, faults) = plan(possible(LogKind::Redis), usize::MAX, LEASE, &mut rng);
            missing.retain(|kind| faults.iter().all(|fault| fault.kind != *kind));
        }
        assert_eq!(missing, []);
        let kinds = |seed| -> Vec<_> {
            let (_, faults) = plan(possible(LogKind::Nats), 9, LEASE, &mut Rng::new(seed));
            faults
                .into_iter()
                .map(|fault| (fault.kind, fault.at))
                .collect()
        };
        assert_eq!(kinds(7), kinds(7));
        assert_ne!(kinds(7), kinds(8));
    }

    #[test]
    fn a_memory_log_has_no_broker_and_kills_are_limited() {
        let mut rng = Rng::new(2);
        for kills in 0..20 {
            let (_, faults) = plan(possible(LogKind::Memory), kills, LEASE, &mut rng);
            assert!(
                faults
                    .iter()
                    .all(|fault| matches!(fault.kind.area(), Area::Gateways | Area::Clients))
            );
            assert!(faults.iter().filter(|fault| fault.kind.is_kill()).count() <= kills);
        }
    }
}
