//! The error of estimated usage against the usage that servers reported, over all recordings.
//!
//! `cargo test -p unbraid-tests --test it usage_error -- --nocapture` prints it. A hash of the names splits the recordings in
//! two halves. The constants of the estimate were fitted on one half and are validated on the other.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::Write,
    path::{Path, PathBuf},
};

use serde_json::Value;
use unbraid::{Demux, Framing, Prompt, Tokenizer, tokens::Counter};
use unbraid_testkit::fixture::{Corpus, Options, corpus};

use crate::support::{demux, options};

/// An estimated count, and the reported one.
#[derive(Debug, Clone, Copy)]
struct Sample {
    counted: u64,
    reported: u64,
}

impl Sample {
    fn error(self) -> i64 {
        self.counted.cast_signed() - self.reported.cast_signed()
    }

    fn relative(self) -> f64 {
        self.error() as f64 / self.reported.max(1) as f64 * 100.0
    }
}

/// The samples of each group, by half: fitted, held out.
type Groups = BTreeMap<String, [Vec<Sample>; 2]>;

/// FNV-1a, folded to one bit, because it is the same on every machine and in every version.
fn half(name: &str) -> usize {
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (hash.count_ones() % 2) as usize
}

/// Recordings without real usage, according to their manifests: mock servers and handwritten streams.
fn synthetic(streams: &[(PathBuf, Vec<u8>)]) -> BTreeSet<PathBuf> {
    let mut synthetic = BTreeSet::new();
    let folders: BTreeSet<&Path> = streams
        .iter()
        .filter_map(|(path, _)| path.parent())
        .collect();
    for folder in folders
        .iter()
        .copied()
        .chain(folders.iter().filter_map(|f| f.parent()))
    {
        let manifest = fs::read_to_string(folder.join("MANIFEST.tsv")).unwrap_or_default();
        let uncounted = [
            "synthetic",
            "hand-written",
            "inline-recorded?",
            "\taimock\t",
            "\tmockllm\t",
        ];
        let lines = manifest.lines();
        let lines = lines.filter(|line| uncounted.iter().any(|word| line.contains(word)));
        synthetic.extend(lines.filter_map(|line| Some(folder.join(line.split('\t').next()?))));
    }
    synthetic
}

/// The request of a recording, if it is known.
fn request(path: &Path) -> Option<Value> {
    let text = fs::read(path.with_extension("req.json")).ok()?;
    serde_json::from_slice(&text).ok()
}

fn family(counter: Counter) -> &'static str {
    match counter.framing() {
        Framing::OpenAi => "openai",
        _ => "other",
    }
}

/// Whether the tokens can be counted: not with hidden reasoning, with audio, or for a stream that was cut.
fn is_countable(demux: &Demux) -> bool {
    let usage = demux.usage();
    let reasoning = usage
        .raw
        .pointer("/completion_tokens_details/reasoning_tokens");
    let hidden = reasoning.and_then(Value::as_u64).unwrap_or(0) > 0;
    let has_audio = |message: &unbraid::Message| message.audio.is_some();
    let ended = demux.choices().all(|choice| {
        let outcome = choice.outcome();
        outcome.is_some_and(|outcome| outcome.end.as_str() == "finished")
    });
    let audio = demux.choices().any(|choice| has_audio(&choice.message()));
    ended && !audio && !hidden && !usage.below_received && demux.choices().count() > 0
}

fn add_completion(groups: &mut Groups, name: &str, demux: &Demux, prompt: &Prompt) {
    let counter = Counter::for_response(demux.metadata(), prompt);
    let Some(reported) = demux.usage().completion_tokens else {
        return;
    };
    let messages: Vec<_> = demux.choices().map(|choice| choice.message()).collect();
    let counts = messages
        .iter()
        .map(|message| prompt.completion_tokens(message, &counter));
    let counted = counts.sum();
    let calls = messages.iter().map(|message| message.tool_calls.len());
    let reasons = messages.iter().any(|message| !message.reasoning.is_empty());
    let what = match (calls.max().unwrap_or(0), reasons) {
        (0, false) => "text",
        (0, true) => "text after reasoning",
        (1, false) => "one call",
        (1, true) => "one call after reasoning",
        (_, _) => "parallel calls",
    };
    let group = format!("answer   {:<7}{what}", family(counter));
    let sample = Sample { counted, reported };
    groups.entry(group).or_default()[half(name)].push(sample);
}

fn add_prompt(groups: &mut Groups, name: &str, demux: &Demux, request: &Value) {
    let prompt = Prompt::from_request(request);
    let counter = Counter::for_response(demux.metadata(), &prompt);
    let tokens = prompt.tokens(&counter);
    let text = request.to_string();
    // Not counted: images, audio, files, and the schema of the answer.
    let uncounted = ["image_url", "input_audio", "\"file\"", "response_format"];
    let (Some(reported), Some(counted)) = (demux.usage().prompt_tokens, tokens) else {
        return;
    };
    if uncounted.iter().any(|word| text.contains(word)) {
        return;
    }
    let called = text.contains("\"tool_calls\":[{");
    let offered = request.get("tools").or_else(|| request.get("functions"));
    let offered = offered
        .and_then(Value::as_array)
        .is_some_and(|all| !all.is_empty());
    let what = match (offered, called) {
        (false, false) => "text",
        (true, false) => "tools",
        (false, true) => "calls in the history",
        (true, true) => "tools, calls in the history",
    };
    let group = format!("request  {:<7}{what}", family(counter));
    let sample = Sample { counted, reported };
    groups.entry(group).or_default()[half(name)].push(sample);
}

/// The quantile of sorted values.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let rank = (sorted.len().saturating_sub(1)) as f64 * share;
    sorted[rank.round() as usize]
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

fn line(samples: &[Sample]) -> String {
    if samples.is_empty() {
        return "   0".to_owned();
    }
    let errors = sorted(samples.iter().map(|sample| sample.error() as f64));
    let sizes = sorted(samples.iter().map(|sample| sample.error().abs() as f64));
    let relative = sorted(samples.iter().map(|sample| sample.relative()));
    let share = |within: f64| {
        let count = sizes.iter().filter(|size| **size <= within).count();
        count as f64 * 100.0 / sizes.len() as f64
    };
    format!(
        "{:4} {:5.0} % {:5.0} % {:7.0} {:6.0} {:6.0} {:8.1} %",
        samples.len(),
        share(0.0),
        share(1.0),
        quantile(&errors, 0.5),
        quantile(&sizes, 0.9),
        quantile(&sizes, 1.0),
        quantile(&relative, 0.5),
    )
}

#[test]
fn half_of_the_estimates_for_openai_models_are_off_by_two_tokens_at_most() {
    let Corpus::Streams(streams) = corpus() else {
        return; // tests/it/corpus.rs reports a missing corpus
    };
    let mut groups = Groups::new();
    let synthetic = synthetic(&streams);
    for (path, bytes) in &streams {
        let (demux, _) = demux([bytes.as_slice()], options(&Options::default()));
        let request = request(path);
        if synthetic.contains(path) || !is_countable(&demux) {
            continue;
        }
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let prompt = request
            .as_ref()
            .map_or_else(Prompt::default, Prompt::from_request);
        add_completion(&mut groups, &name, &demux, &prompt);
        if let Some(request) = &request {
            add_prompt(&mut groups, &name, &demux, request);
        }
    }
    let mut out = std::io::stdout().lock();
    for (title, which) in [("fitted", 0), ("held out", 1)] {
        let head = "   n   exact within1  median    p90    max   relative";
        writeln!(out, "{title:<44}{head}").unwrap();
        for (group, halves) in &groups {
            writeln!(out, "{group:<44}{}", line(&halves[which])).unwrap();
        }
    }
    let openai = groups.iter().filter(|(group, _)| group.contains("openai"));
    let held_out: Vec<Sample> = openai.flat_map(|(_, [_, held])| held.clone()).collect();
    let near = |sample: &&Sample| sample.error().abs() <= 2;
    let within = held_out.iter().filter(near).count();
    assert!(
        within * 2 >= held_out.len(),
        "{within} of {}",
        held_out.len()
    );
}
