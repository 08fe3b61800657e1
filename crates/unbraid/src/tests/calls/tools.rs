//! `run_calls`: tools that run while the choice streams, under paused time.

mod faults;

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use tokio::time::{Instant, sleep};

use super::*;
use crate::{
    ReadyPolicy,
    json::Repair,
    tools::{RunLimits, Tool, ToolError, ToolResult, Tools, VisibleError, run_calls},
};

const TICK: Duration = Duration::from_millis(100);

const SECRET: &str = "/srv/secret";

/// What the tools did, each with its tick.
#[derive(Clone)]
struct Journal {
    start: Instant,
    lines: Arc<Mutex<Vec<String>>>,
}

/// Notes when it is dropped.
struct Guard(Journal, String);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.note(&self.1);
    }
}

impl Journal {
    fn new() -> Self {
        Self {
            start: Instant::now(),
            lines: Arc::default(),
        }
    }

    fn note(&self, line: &str) {
        let tick = self.start.elapsed().as_millis() / TICK.as_millis();
        self.lines.lock().unwrap().push(format!("{tick} {line}"));
    }

    fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap().clone()
    }

    /// A tool that takes a second, or as many ticks as `ticks` says, and notes its start and that it was dropped or done.
    fn tool(&self, name: &'static str) -> Tool {
        let journal = self.clone();
        Tool::new(
            name,
            "A test.",
            json!({ "type": "object" }),
            move |arguments: Value| {
                journal.note(&format!("{name} starts"));
                let guard = Guard(journal.clone(), format!("{name} is over"));
                async move {
                    let ticks = arguments["ticks"].as_u64().unwrap_or(10);
                    sleep(TICK * u32::try_from(ticks).unwrap()).await;
                    drop(guard);
                    Ok::<_, VisibleError>(format!("{name} {arguments}"))
                }
            },
        )
    }
}

type Fallible = Result<String, Box<dyn std::error::Error + Send + Sync>>;

fn tool<F, R>(name: &'static str, function: F) -> Tool
where
    F: Fn(Value) -> R + Send + Sync + 'static,
    R: Future<Output = Fallible> + Send + 'static,
{
    Tool::new(name, "A test.", json!({ "type": "object" }), function)
}

/// Calls with these names and arguments in one choice.
fn calls_of(calls: &[(&str, &str)]) -> Vec<Step> {
    let mut steps = Vec::new();
    for (index, (name, arguments)) in (0..).zip(calls) {
        steps.push(header(0, index, &format!("id{index}"), name));
        steps.push(fragment(0, index, arguments));
    }
    steps.extend([bytes(finish(0, "tool_calls")), bytes(DONE)]);
    steps
}

fn texts(results: &[ToolResult]) -> Vec<String> {
    results
        .iter()
        .map(|result| result.text().into_owned())
        .collect()
}

async fn run(steps: Vec<Step>, tools: &Tools, limits: RunLimits) -> Vec<ToolResult> {
    let choice = soon(read(steps).first()).await.unwrap();
    soon(run_calls(&choice, tools, limits)).await
}

#[tokio::test(start_paused = true)]
async fn calls_run_at_the_same_time_and_results_come_in_call_order() {
    let journal = Journal::new();
    let tools = Tools::new().with(journal.tool("a")).with(journal.tool("b"));
    let steps = calls_of(&[
        ("a", "{\"ticks\":9}"),
        ("b", "{\"ticks\":3}"),
        ("a", "{\"ticks\":6}"),
    ]);
    let results = run(steps, &tools, RunLimits::default()).await;
    assert_eq!(
        texts(&results),
        ["a {\"ticks\":9}", "b {\"ticks\":3}", "a {\"ticks\":6}"]
    );
    let ids: Vec<_> = results
        .iter()
        .map(|result| result.call.id.as_deref().unwrap())
        .collect();
    assert_eq!(ids, ["id0", "id1", "id2"]);
    assert_eq!(
        journal.lines(),
        [
            "0 a starts",
            "0 b starts",
            "0 a starts",
            "3 b is over",
            "6 a is over",
            "9 a is over"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn calls_can_be_run_by_a_spawned_task() {
    let tools = Tools::new().with(tool("f", async |_| Ok("done".to_owned())));
    let choice = soon(read(calls_of(&[("f", "{}")])).first()).await.unwrap();
    let run = async move { run_calls(&choice, &tools, RunLimits::default()).await };
    let results = soon(tokio::spawn(run)).await.unwrap();
    assert_eq!(texts(&results), ["done"]);
}

#[tokio::test(start_paused = true)]
async fn call_two_of_two_starts_before_the_end_of_the_choice() {
    let steps = || {
        vec![
            header(0, 0, "a", "a"),
            fragment(0, 0, "{\"ticks\":9}"),
            Step::Pause(TICK),
            header(0, 1, "b", "b"),
            fragment(0, 1, "{\"ticks\":9}"),
            Step::Pause(TICK),
            bytes(finish(0, "tool_calls")),
            Step::Pause(TICK),
            bytes(DONE),
        ]
    };
    for (policy, [a, b]) in [
        (ReadyPolicy::AtEnd, [3, 3]),
        (ReadyPolicy::NextCall, [1, 2]),
        (ReadyPolicy::ValidJson, [0, 1]),
    ] {
        let journal = Journal::new();
        let tools = Tools::new().with(journal.tool("a")).with(journal.tool("b"));
        let choice = soon(read(steps()).first()).await.unwrap();
        let end = async {
            choice.outcome().await;
            journal.note("end");
        };
        let limits = RunLimits::default().with_ready(policy);
        let (_, results) =
            soon(async { tokio::join!(end, run_calls(&choice, &tools, limits)) }).await;
        assert_eq!(results.len(), 2);
        let mut expected = vec![
            format!("{a} a starts"),
            format!("{b} b starts"),
            format!("{} a is over", a + 9),
            format!("{} b is over", b + 9),
            "3 end".to_owned(),
        ];
        let mut lines = journal.lines();
        expected.sort();
        lines.sort();
        assert_eq!(lines, expected, "{policy:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn no_more_tools_run_than_the_limit_allows() {
    let journal = Journal::new();
    let tools = Tools::new().with(journal.tool("a"));
    let steps = calls_of(&[("a", "{\"ticks\":2}"); 3]);
    for (concurrency, expected) in [
        (0, [0, 2, 4]),
        (1, [0, 2, 4]),
        (2, [0, 0, 2]),
        (usize::MAX, [0, 0, 0]),
    ] {
        let journal = Journal::new();
        let tools = Tools::new().with(journal.tool("a"));
        let limits = RunLimits::default().with_concurrency(concurrency);
        assert_eq!(run(steps.clone(), &tools, limits).await.len(), 3);
        let lines = journal.lines();
        let starts: Vec<_> = lines
            .iter()
            .filter_map(|line| line.strip_suffix(" a starts"))
            .collect();
        assert_eq!(
            starts,
            expected.map(|tick: u32| tick.to_string()),
            "{concurrency}"
        );
    }
    drop(tools);
}

#[tokio::test(start_paused = true)]
async fn t37_a_call_in_both_formats_runs_once() {
    static RUNS: AtomicUsize = AtomicUsize::new(0);
    let tools = Tools::new().with(tool("f", async |_| {
        RUNS.fetch_add(1, Ordering::Relaxed);
        Ok("done".to_owned())
    }));
    let function = json!({ "name": "f", "arguments": "{\"x\":1}" });
    let both = json!({ "function_call": function, "tool_calls": [{ "index": 0, "id": "a", "function": function }] });
    let steps = vec![delta(0, &both), bytes(finish(0, "tool_calls")), bytes(DONE)];
    let limits = RunLimits::default().with_ready(ReadyPolicy::ValidJson);
    let results = run(steps, &tools, limits).await;
    assert_eq!(
        (results.len(), results[0].call.kind),
        (1, CallKind::Function)
    );
    assert_eq!(RUNS.load(Ordering::Relaxed), 1);

    let legacy = json!({ "function_call": function });
    let steps = vec![
        delta(0, &legacy),
        bytes(finish(0, "function_call")),
        bytes(DONE),
    ];
    let results = run(steps, &tools, limits).await;
    assert_eq!(
        (results.len(), results[0].call.kind),
        (1, CallKind::LegacyFunction)
    );
    assert_eq!(results[0].text(), "done");
}

#[tokio::test(start_paused = true)]
async fn t31_a_custom_tool_gets_its_text() {
    let echo = Tool::custom("sh", "A shell.", async |input: String| {
        Ok::<_, VisibleError>(input)
    });
    let tools = Tools::new()
        .with(echo)
        .with(tool("f", async |_| Ok(String::new())));
    let custom = |name: &str, index| json!({ "index": index, "id": "c", "type": "custom", "custom": { "name": name, "input": "ls {" } });
    let calls = json!({ "tool_calls": [custom("sh", 0), custom("f", 1)] });
    let steps = vec![
        delta(0, &calls),
        bytes(finish(0, "tool_calls")),
        bytes(DONE),
    ];
    let results = run(steps, &tools, RunLimits::default()).await;
    assert_eq!(
        texts(&results),
        ["ls {", "error: the tool takes JSON arguments"]
    );
}

#[tokio::test(start_paused = true)]
async fn t22_arguments_are_repaired_only_if_that_is_allowed() {
    let tools = Tools::new().with(tool("f", async |arguments| Ok(arguments.to_string())));
    let steps = calls_of(&[("f", "{}{\"a\":1}"), ("f", "{\"a\":\"x\ny\"}")]);
    let strict = run(steps.clone(), &tools, RunLimits::default()).await;
    let refused = "error: the arguments are not valid JSON: the text is JSON only after a repair";
    assert_eq!(texts(&strict), [refused, refused]);
    let limits = RunLimits::default().with_repair(Some(Repair::CONTROLS));
    assert_eq!(
        texts(&run(steps, &tools, limits).await),
        ["{\"a\":1}", "{\"a\":\"x\\ny\"}"]
    );
}

#[cfg(feature = "schemars")]
#[tokio::test(start_paused = true)]
async fn a_schema_follows_from_the_type_of_the_arguments() {
    use crate::tools::schemars::{self, JsonSchema};

    #[derive(serde::Deserialize, JsonSchema)]
    struct Trip {
        /// Where to.
        to: Place,
        days: Option<u8>,
    }

    #[derive(serde::Deserialize, JsonSchema)]
    struct Place {
        city: String,
    }

    let tool = Tool::typed("trip", "Plans a trip.", async |trip: Trip| {
        Ok::<_, VisibleError>(json!({ "city": trip.to.city, "days": trip.days }))
    });
    let definition = tool.definition();
    let parameters = &definition["function"]["parameters"];
    assert_eq!(parameters["type"], "object");
    assert_eq!(parameters["required"], json!(["to"]));
    assert_eq!(
        parameters["properties"]["to"]["properties"]["city"]["type"],
        "string"
    );
    assert!(parameters.get("$schema").is_none() && parameters.get("title").is_none());
    assert!(!definition.to_string().contains("$ref"), "{definition}");

    let tools = Tools::new().with(tool);
    let steps = calls_of(&[
        ("trip", "{\"to\":{\"city\":\"Oslo\"},\"days\":2}"),
        ("trip", "{}"),
    ]);
    let results = run(steps, &tools, RunLimits::default()).await;
    assert_eq!(results[0].text(), "{\"city\":\"Oslo\",\"days\":2}");
    assert!(
        results[1]
            .text()
            .starts_with("error: the arguments do not fit")
    );
}
