//! The inputs: what is assumed, and what was measured.

/// Names, default values and meanings.
const INPUTS: [(&str, f64, &str); 17] = [
    ("generations", 1_000_000.0, "concurrent generations"),
    ("choices", 4.0, "choices of a generation (n)"),
    ("deltas", 5.0, "deltas per second of a choice"),
    ("seconds", 30.0, "duration of a generation"),
    (
        "ttl",
        3600.0,
        "seconds for which a stream is kept after its end (--ttl)",
    ),
    (
        "delta_bytes",
        200.0,
        "bytes of a delta in a record; measured: unbraid-bench log",
    ),
    (
        "append_bytes",
        32.0,
        "bytes that an append adds in the engine",
    ),
    (
        "stream_bytes",
        1500.0,
        "bytes of a kept stream beside its records",
    ),
    (
        "resumed",
        0.2,
        "readers of streams that another gateway produces, per generation",
    ),
    (
        "gateway_us",
        20.0,
        "CPU of a gateway for a delta in microseconds; goal of GATEWAY.md",
    ),
    ("gateway_cores", 8.0, "cores of a gateway"),
    (
        "append_us",
        11.0,
        "CPU of an engine's shard for an append in microseconds; measured: unbraid-bench log (Redis)",
    ),
    (
        "commit_ms",
        0.0,
        "time of a shard for a group of appends in milliseconds (a sync)",
    ),
    (
        "rtt_ms",
        0.3,
        "round trip between a gateway and a shard in milliseconds",
    ),
    (
        "linger_ms",
        0.0,
        "wait for more events before an append (--linger)",
    ),
    ("shard_gb", 50.0, "memory of a shard in GB"),
    ("target", 0.6, "how busy a core or a memory may be"),
];

/// The network of a machine, in bytes per second: 10 Gbit/s.
pub(super) const NETWORK: f64 = 1.25e9;

/// The streams that one connection of a gateway's hub follows.
pub(super) const HUB_STREAMS: f64 = 128.0;

#[derive(Debug, Clone)]
pub(super) struct Inputs(Vec<f64>);

impl Inputs {
    /// The defaults with changes of the form `NAME=VALUE`.
    pub(super) fn new(changes: &[&str]) -> Result<Self, String> {
        let mut values: Vec<f64> = INPUTS.iter().map(|(_, value, _)| *value).collect();
        for change in changes {
            let (name, value) = change
                .split_once('=')
                .ok_or_else(|| format!("{change} is not NAME=VALUE"))?;
            let position = INPUTS.iter().position(|(known, ..)| *known == name);
            let slot = position.and_then(|position| values.get_mut(position));
            let slot = slot.ok_or_else(|| format!("no input is named {name}"))?;
            let value: f64 = value
                .parse()
                .map_err(|_| format!("{change}: not a number"))?;
            if !value.is_finite() || value < 0.0 {
                return Err(format!("{change}: not a positive number"));
            }
            *slot = value;
        }
        Ok(Self(values))
    }

    pub(super) fn all(&self) -> Vec<(&'static str, f64, &'static str)> {
        let rows = INPUTS.iter().zip(&self.0);
        rows.map(|((name, _, meaning), value)| (*name, *value, *meaning))
            .collect()
    }

    /// The value of an input. A name that does not exist is 0, and a test knows them all.
    pub(super) fn get(&self, name: &str) -> f64 {
        let position = INPUTS.iter().position(|(known, ..)| *known == name);
        let value = position.and_then(|position| self.0.get(position));
        value.copied().unwrap_or(0.0)
    }

    pub(super) fn with_linger(&self, linger_ms: f64) -> Self {
        let change = format!("linger_ms={linger_ms}");
        let mut changed = self.clone();
        if let Ok(Self(values)) = Self::new(&[&change]) {
            let position = INPUTS.iter().position(|(name, ..)| *name == "linger_ms");
            for (number, (slot, value)) in changed.0.iter_mut().zip(values).enumerate() {
                if Some(number) == position {
                    *slot = value;
                }
            }
        }
        changed
    }
}
