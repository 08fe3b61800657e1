//! The arithmetic: what a number of generations needs.

use serde::Serialize;

use super::inputs::{HUB_STREAMS, Inputs, NETWORK};
use crate::random::Random;

/// What a deployment needs.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Plan {
    pub(super) deltas_per_append: f64,
    pub(super) appends_per_second: f64,
    pub(super) log_gb_per_second: f64,
    /// Records of running generations.
    pub(super) running_gb: f64,
    /// Records of streams that have ended.
    pub(super) kept_tb: f64,
    pub(super) shards_by_cpu: u64,
    pub(super) shards_by_network: u64,
    pub(super) shards_by_memory: u64,
    pub(super) shards: u64,
    pub(super) gateways: u64,
    pub(super) hub_connections_per_gateway: u64,
    pub(super) first_limit: &'static str,
}

impl Plan {
    pub(super) fn new(inputs: &Inputs) -> Self {
        let get = |name| inputs.get(name);
        let generations = get("generations");
        let target = get("target").max(0.01);
        let rate = get("choices") * get("deltas");
        // An append takes what arrives during its linger, and what arrived during the append before it.
        let cycle = (get("linger_ms") + get("rtt_ms") + get("commit_ms")) / 1000.0;
        let deltas_per_append = 1.0 + rate * cycle;
        let appends_per_second = generations * rate / deltas_per_append;
        let bytes_per_delta = get("delta_bytes") + get("append_bytes") / deltas_per_append;
        // Each append is written once, and read once for each remote reader.
        let log_bytes = generations * rate * bytes_per_delta * (1.0 + get("resumed"));
        let stream_bytes = rate * get("seconds") * bytes_per_delta + get("stream_bytes");
        // On average a running generation is half done.
        let running = generations * stream_bytes / 2.0;
        let kept = generations / get("seconds").max(0.001) * get("ttl") * stream_bytes;
        let group = get("commit_ms") / 1000.0;
        // A shard that syncs groups its appends, so the sync bounds their number only together with the streams.
        let append_seconds =
            get("append_us") / 1e6 + if group > 0.0 { group / 1000.0 } else { 0.0 };
        let shards_by_cpu = ceil(appends_per_second * append_seconds / target);
        let shards_by_network = ceil(log_bytes / (NETWORK * target));
        let shards_by_memory = ceil((running + kept) / (get("shard_gb") * 1e9 * target));
        let gateways = ceil(
            generations * rate * get("gateway_us") / 1e6 / (get("gateway_cores").max(1.0) * target),
        );
        let shards = shards_by_cpu.max(shards_by_network).max(shards_by_memory);
        let remote = generations * get("resumed") / gateways as f64;
        let first_limit = if shards == shards_by_memory {
            "memory of kept streams: shorten --ttl, or keep ended streams on disk"
        } else if shards == shards_by_cpu {
            "appends: raise --linger"
        } else {
            "network of the shards"
        };
        Self {
            deltas_per_append,
            appends_per_second,
            log_gb_per_second: log_bytes / 1e9,
            running_gb: running / 1e9,
            kept_tb: kept / 1e12,
            shards_by_cpu,
            shards_by_network,
            shards_by_memory,
            shards,
            gateways,
            // A gateway has one engine.
            hub_connections_per_gateway: ceil(remote / HUB_STREAMS),
            first_limit,
        }
    }
}

/// The next whole number, at least 1.
fn ceil(value: f64) -> u64 {
    value.ceil().max(1.0) as u64
}

/// The streams whose distribution is simulated.
pub(super) const SAMPLED: usize = 100_000;

/// By how much the fullest of some shards exceeds the mean, if streams are distributed by a hash of their ids.
pub(super) fn imbalance(shards: usize) -> f64 {
    let mut random = Random::new(11);
    let mut counts = vec![0_usize; shards.max(1)];
    for _ in 0..SAMPLED {
        // Ids are random, so any hash distributes them as a random number does.
        if let Some(count) = counts.get_mut(random.below(shards)) {
            *count += 1;
        }
    }
    let max = counts.iter().max().copied().unwrap_or_default();
    max as f64 * counts.len() as f64 / SAMPLED as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_follows_from_its_inputs() {
        let inputs = Inputs::new(&[
            "rtt_ms=0",
            "append_us=12",
            "append_bytes=0",
            "stream_bytes=0",
            "resumed=0",
        ])
        .unwrap();
        let plan = Plan::new(&inputs);
        assert_eq!(plan.deltas_per_append, 1.0);
        assert_eq!(plan.appends_per_second, 20e6);
        assert!((plan.log_gb_per_second - 4.0).abs() < 1e-9);
        // 20 deltas/s of 200 bytes for 30 s are 120 kB; 33,333 end each second, and stay for an hour.
        assert!((plan.kept_tb - 14.4).abs() < 0.01, "{}", plan.kept_tb);
        assert_eq!(plan.shards_by_cpu, 400);
        assert_eq!(plan.gateways, 84);
        let lingers = Plan::new(&inputs.with_linger(50.0));
        assert_eq!(
            (lingers.deltas_per_append, lingers.appends_per_second),
            (2.0, 10e6)
        );
        assert!(lingers.shards_by_cpu == 200);
    }

    #[test]
    fn every_input_that_is_used_exists() {
        let inputs = Inputs::new(&[]).unwrap();
        let used = include_str!("plan.rs").to_owned() + include_str!("shard.rs");
        for name in used.split("get(\"").skip(1) {
            let name = name.split('"').next().unwrap_or_default();
            let is_known = inputs.all().iter().any(|(known, ..)| *known == name);
            assert!(is_known || name.is_empty(), "{name}");
        }
        for (name, ..) in inputs.all() {
            assert!(
                used.contains(&format!("get(\"{name}\")")),
                "{name} is not used"
            );
        }
    }

    #[test]
    fn shards_are_filled_evenly() {
        let imbalance = imbalance(16);
        assert!(imbalance > 1.0 && imbalance < 1.1, "{imbalance}");
    }
}
