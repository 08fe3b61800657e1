//! How a deployment grows: arithmetic and a simulation of one shard, from inputs that are stated.
//!
//! `unbraid-bench scale` prints the inputs and what follows from them; `scale NAME=VALUE ..` changes them.

mod inputs;
mod plan;
mod shard;

use std::io::{self, Write};

use serde_json::json;

use inputs::Inputs;
use plan::Plan;
use shard::{Simulated, simulate};

/// The loads of the simulated shard, as parts of what it can do.
const LOADS: [f64; 5] = [0.3, 0.5, 0.7, 0.9, 1.1];

/// The lingers whose plans are compared, in milliseconds.
const LINGERS: [f64; 5] = [0.0, 20.0, 50.0, 100.0, 250.0];

pub(crate) fn run(
    changes: &[&str],
    quick: bool,
    as_json: bool,
    out: &mut impl Write,
) -> io::Result<()> {
    let inputs = Inputs::new(changes).map_err(io::Error::other)?;
    let seconds = if quick { 2.0 } else { 10.0 };
    let plans: Vec<(f64, Plan)> = LINGERS
        .iter()
        .map(|linger| (*linger, Plan::new(&inputs.with_linger(*linger))))
        .collect();
    let shards: Vec<Simulated> = LOADS
        .iter()
        .map(|load| simulate(&inputs, *load, seconds))
        .collect();
    if as_json {
        let plans: Vec<_> = plans
            .iter()
            .map(|(linger, plan)| json!({ "linger_ms": linger, "plan": plan }))
            .collect();
        return writeln!(
            out,
            "{}",
            json!({ "inputs": inputs.all(), "plans": plans, "shard": shards })
        );
    }
    writeln!(out, "inputs (change them with NAME=VALUE)")?;
    for (name, value, meaning) in inputs.all() {
        writeln!(out, "  {name:<24} {value:>12}  {meaning}")?;
    }
    print_plans(&plans, out)?;
    print_shard(&shards, out)?;
    writeln!(
        out,
        "\nfullest shard over the mean, {} streams by hash: {:.3}",
        plan::SAMPLED,
        plan::imbalance(16)
    )
}

fn print_plans(plans: &[(f64, Plan)], out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "\n{:>9} {:>12} {:>9} {:>8} {:>9} {:>10} {:>9} {:>10} {:>9}",
        "linger ms",
        "appends/s",
        "deltas/a.",
        "shards",
        "gateways",
        "GB/s log",
        "GB live",
        "TB kept",
        "hub conn."
    )?;
    for (linger, plan) in plans {
        writeln!(
            out,
            "{:>9} {:>12.0} {:>9.2} {:>8} {:>9} {:>10.2} {:>9.1} {:>10.2} {:>9}",
            linger,
            plan.appends_per_second,
            plan.deltas_per_append,
            plan.shards,
            plan.gateways,
            plan.log_gb_per_second,
            plan.running_gb,
            plan.kept_tb,
            plan.hub_connections_per_gateway
        )?;
    }
    if let Some((_, plan)) = plans.first() {
        writeln!(
            out,
            "shards by CPU {}, by network {}, by memory {}",
            plan.shards_by_cpu, plan.shards_by_network, plan.shards_by_memory
        )?;
        writeln!(out, "first limit: {}", plan.first_limit)?;
    }
    Ok(())
}

fn print_shard(shards: &[Simulated], out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "\n{:>6} {:>12} {:>12} {:>10} {:>8} {:>10} {:>10}",
        "load", "generations", "appends/s", "deltas/a.", "busy", "p50 ms", "p99 ms"
    )?;
    for shard in shards {
        writeln!(
            out,
            "{:>6.1} {:>12} {:>12.0} {:>10.2} {:>7.0}% {:>10.2} {:>10.2}",
            shard.load,
            shard.generations,
            shard.appends_per_second,
            shard.deltas_per_append,
            shard.busy * 100.0,
            shard.p50_ms,
            shard.p99_ms
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_contains_every_input_and_plan() {
        let mut out = Vec::new();
        run(&["generations=1000"], true, false, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(
            text.contains("generations") && text.contains("first limit"),
            "{text}"
        );
        let mut out = Vec::new();
        run(&[], true, true, &mut out).unwrap();
        let report: serde_json::Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(report["plans"].as_array().unwrap().len(), LINGERS.len());
        assert!(run(&["no such=1"], true, false, &mut Vec::new()).is_err());
        assert!(run(&["ttl=-1"], true, false, &mut Vec::new()).is_err());
    }
}
