//! `run_calls`: tools that run while the choice streams, under paused time.

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
async fn every_fault_is_a_result_that_leaks_nothing() {
    let journal = Journal::new();
    let tools = Tools::new()
        .with(journal.tool("slow"))
        .with(tool("panics", async |_| {
            panic!("{}", unbraid_testkit::script::ON_PURPOSE)
        }))
        .with(tool("panics_at_once", |_| {
            assert!(SECRET.is_empty(), "{}", unbraid_testkit::script::ON_PURPOSE);
            async { Ok(String::new()) }
        }))
        .with(tool("fails", async |_| Err(SECRET.into())))
        .with(tool("explains", async |_| {
            Err(VisibleError::new("no such city").into())
        }))
        .with(Tool::new("typed", "", json!({}), async |_: Vec<u8>| {
            Ok::<_, VisibleError>(SECRET)
        }));
    let steps = calls_of(&[
        ("slow", "{\"ticks\":99}"),
        ("panics", "{}"),
        ("panics_at_once", "{}"),
        ("fails", "{}"),
        ("explains", "{}"),
        ("typed", "{\"key\":\"/srv/secret\"}"),
        ("unknown", "{}"),
        ("fails", "{\"key\":/srv/secret"),
    ]);
    let limits = RunLimits::default().with_timeout(Some(TICK * 2));
    let results = run(steps, &tools, limits).await;
    assert_eq!(
        texts(&results),
        [
            "error: the tool did not answer in time",
            "error: the tool failed",
            "error: the tool failed",
            "error: the tool failed",
            "error: no such city",
            "error: the arguments do not fit the parameters of the tool (line 1, column 0)",
            "error: there is no tool of this name",
            "error: the arguments are not valid JSON: no JSON at byte 7",
        ]
    );
    let errors: Vec<_> = results
        .iter()
        .map(|result| result.output.clone().unwrap_err())
        .collect();
    let shown: Vec<_> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(shown[0], "the tool did not end within 200ms");
    assert_eq!(shown[1], "the tool panicked");
    assert!(matches!(&errors[3], ToolError::Failed(failed) if failed.get().to_string() == SECRET));
    assert!(
        matches!(&errors[5], ToolError::Call(error) if matches!(error.kind(), JsonErrorKind::TypeMismatch(_)))
    );
    assert!(matches!(errors[6], ToolError::UnknownTool));
    for line in [
        format!("{results:?}"),
        format!("{errors:?}"),
        shown.join("\n"),
    ] {
        assert!(!line.contains(SECRET), "{line}");
    }
    assert_eq!(journal.lines(), ["0 slow starts", "2 slow is over"]);
}

#[tokio::test(start_paused = true)]
async fn dropping_the_future_drops_the_tools_at_once() {
    let journal = Journal::new();
    let tools = Tools::new().with(journal.tool("a"));
    let choice = soon(read(calls_of(&[("a", "{}"), ("a", "{}")])).first())
        .await
        .unwrap();
    let running = tokio::time::timeout(TICK * 3, run_calls(&choice, &tools, RunLimits::default()));
    assert!(running.await.is_err());
    // Without a yield to the runtime in between.
    assert_eq!(
        journal.lines(),
        ["0 a starts", "0 a starts", "3 a is over", "3 a is over"]
    );
    assert_eq!(soon(choice.outcome()).await.end.as_str(), "finished");
}

#[tokio::test(start_paused = true)]
async fn t28_a_late_fragment_drops_the_tool_and_is_the_result() {
    let journal = Journal::new();
    let tools = Tools::new().with(journal.tool("a")).with(journal.tool("b"));
    let steps = vec![
        header(0, 0, "a", "a"),
        fragment(0, 0, "{\"ticks\":2}"),
        header(0, 1, "b", "b"),
        fragment(0, 1, "{\"ticks\":5}"),
        Step::Pause(TICK),
        fragment(0, 0, "{}"),
        Step::Pause(TICK),
        bytes(finish(0, "tool_calls")),
        bytes(DONE),
    ];
    let limits = RunLimits::default().with_ready(ReadyPolicy::NextCall);
    let results = run(steps, &tools, limits.clone()).await;
    assert_eq!(
        texts(&results),
        ["error: the call was not complete", "b {\"ticks\":5}"]
    );
    assert!(matches!(
        &results[0].output,
        Err(ToolError::Call(error)) if matches!(error.kind(), JsonErrorKind::LateFragment { .. })
    ));
    assert_eq!(
        journal.lines(),
        ["0 a starts", "1 a is over", "2 b starts", "7 b is over"]
    );

    // A tool that was done by then has an error as its result, too.
    let steps = vec![
        header(0, 0, "a", "a"),
        fragment(0, 0, "{\"ticks\":1}"),
        header(0, 1, "b", "b"),
        Step::Pause(TICK * 2),
        fragment(0, 0, "{}"),
        bytes(finish(0, "tool_calls")),
        bytes(DONE),
    ];
    let results = run(steps, &tools, limits).await;
    assert_eq!(results[0].text(), "error: the call was not complete");
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
    let results = run(steps, &tools, limits.clone()).await;
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

#[tokio::test(start_paused = true)]
async fn a_cut_choice_has_results_for_each_of_its_calls() {
    let tools = Tools::new().with(tool("f", async |_| Ok("done".to_owned())));
    let mut steps = calls_of(&[("f", "{}"), ("f", "{\"a\":")]);
    steps.truncate(4);
    steps.push(Step::Fail);
    let limits = RunLimits::default().with_ready(ReadyPolicy::NextCall);
    let results = run(steps, &tools, limits).await;
    assert_eq!(
        texts(&results),
        ["done", "error: the call was not complete"]
    );
    let steps = vec![
        bytes(content(0, "no calls")),
        bytes(finish(0, "stop")),
        bytes(DONE),
    ];
    assert!(run(steps, &tools, RunLimits::default()).await.is_empty());
}

#[test]
fn a_runtime_without_timers_reports_it() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let tools = Tools::new().with(tool("f", async |_| Ok("done".to_owned())));
    let run = async |limits| {
        let builder = Completions::builder().implicit_timers(false);
        let choice = read_with(builder, calls_of(&[("f", "{}")]))
            .first()
            .await
            .unwrap();
        run_calls(&choice, &tools, limits).await
    };
    let with_timeout = runtime.block_on(run(RunLimits::default()));
    assert!(matches!(
        with_timeout[0].output,
        Err(ToolError::NoTimeDriver)
    ));
    let without = runtime.block_on(run(RunLimits::default().with_timeout(None)));
    assert_eq!(without[0].text(), "done");
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
