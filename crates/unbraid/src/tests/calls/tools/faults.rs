//! Every fault of a tool or a call is a result, and dropping the future drops the tools.

use super::*;

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
    let results = run(steps, &tools, limits).await;
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
async fn t28_the_result_of_a_late_call_has_all_of_it() {
    let tools = Tools::new().with(tool("f", async |_| Ok("done".to_owned())));
    let late = |rest: &str| {
        bytes(format!(
            "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"tool_calls\":[{{\"index\":0,{rest}}}]}}}}]}}\n\n"
        ))
    };
    let steps = vec![
        late("\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}"),
        header(0, 1, "b", "f"),
        fragment(0, 1, "{}"),
        Step::Pause(TICK),
        fragment(0, 0, "{}"),
        Step::Pause(TICK),
        late("\"id\":\"a\",\"function\":{\"arguments\":\"{}\"}"),
        bytes(finish(0, "tool_calls")),
        bytes(DONE),
    ];
    let limits = RunLimits::default().with_ready(ReadyPolicy::NextCall);
    let results = run(steps, &tools, limits).await;
    let call = &results[0].call;
    assert!(results[0].output.is_err());
    assert_eq!(
        (call.id.as_deref(), &*call.arguments),
        (Some("a"), "{}{}{}")
    );
    assert!(call.status.is_some());
}

#[tokio::test(start_paused = true)]
async fn numbers_of_a_result_keep_their_digits() {
    #[derive(serde::Serialize)]
    struct Weather {
        celsius: f32,
        wind: u128,
    }
    let whole = Tool::new("whole", "", json!({}), async |_: Value| {
        Ok::<_, String>(Weather {
            celsius: 21.3,
            wind: u128::MAX,
        })
    });
    let bare = Tool::new("bare", "", json!({}), async |_: Value| {
        Ok::<_, String>(21.3_f32)
    });
    let tools = Tools::new().with(whole).with(bare);
    let steps = calls_of(&[("whole", "{}"), ("bare", "{}")]);
    let results = run(steps, &tools, RunLimits::default()).await;
    let digits = format!("{{\"celsius\":21.3,\"wind\":{}}}", u128::MAX);
    assert_eq!(texts(&results), [&*digits, "21.3"]);
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
