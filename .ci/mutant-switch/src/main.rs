//! Runs the tests against every mutant of a list that cargo-mutants has made, without a build for each.
//!
//! All mutants go into one copy of the repository, each behind a switch that an environment variable turns on. So the
//! tests are built once, and a mutant costs what its tests take. `docs/mutants.md` has the rest.
mod list;
mod rewrite;
mod run;
mod tree;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::{env, fs};

use list::Mutant;
use run::{Outcome, Suite};
use tree::{Failure, Tree};

/// The packages whose tests are run, each but the first with the mutants of those before it in it. The unit tests of a
/// mutant's own package come first.
const PACKAGES: [&str; 3] = ["unbraid-core", "unbraid", "unbraid-tests"];

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(2),
        Err(error) => {
            eprintln!("mutant-switch: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Whether no mutant has survived.
fn run() -> Result<bool, Failure> {
    let mut arguments = env::args_os().skip(1).map(PathBuf::from);
    let (Some(out), Some(list)) = (arguments.next(), arguments.next()) else {
        return Err("usage: mutant-switch OUT LIST.json".into());
    };
    let out = std::path::absolute(out)?;
    let mutants: Vec<Mutant> = serde_json::from_slice(&fs::read(list)?)?;

    let mut tree = Tree::copy(&out, &mutants)?;
    let mut suites: Vec<Suite> = tree
        .build(&PACKAGES)?
        .into_iter()
        .map(Suite::time)
        .collect::<Result<_, _>>()?;
    suites.sort_by_key(|suite| suite.takes);
    let mut outcomes: BTreeMap<Outcome, Vec<&Mutant>> = BTreeMap::new();
    for number in &tree.unviable {
        outcomes
            .entry(Outcome::Unviable)
            .or_default()
            .push(&mutants[*number]);
    }
    for number in &tree.left {
        outcomes
            .entry(Outcome::NotSwitched)
            .or_default()
            .push(&mutants[*number]);
    }
    for (done, &number) in tree.active().iter().enumerate() {
        let mutant = &mutants[number];
        let (outcome, test) = try_mutant(number, mutant, &suites)?;
        println!(
            "{}/{} {} {} {test}",
            done + 1,
            tree.active().len(),
            outcome.name(),
            mutant.name
        );
        outcomes.entry(outcome).or_default().push(mutant);
    }
    for outcome in Outcome::ALL {
        let found = outcomes.get(&outcome).map_or(&[][..], Vec::as_slice);
        let lines: String = found.iter().map(|m| format!("{}\n", m.name)).collect();
        fs::write(out.join(format!("{}.txt", outcome.name())), lines)?;
    }
    Ok(!outcomes.contains_key(&Outcome::Survived))
}

fn try_mutant(
    number: usize,
    mutant: &Mutant,
    suites: &[Suite],
) -> Result<(Outcome, String), Failure> {
    let depends = |suite: &&Suite| mutant.package == PACKAGES[0] || !suite.is_of(PACKAGES[0]);
    let (own, others): (Vec<_>, Vec<_>) = suites
        .iter()
        .filter(depends)
        .partition(|suite| suite.is_of(&mutant.package));
    for suite in own.into_iter().chain(others) {
        let found = suite.try_mutant(number)?;
        if found.0 != Outcome::Survived {
            return Ok(found);
        }
    }
    Ok((Outcome::Survived, String::new()))
}
