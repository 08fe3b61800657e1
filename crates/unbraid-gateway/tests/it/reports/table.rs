//! Every report and every fault that concerns a log in memory, and the tests that reproduce it. The rows of logs in other
//! processes are those of the contract that all logs pass, and of the crates of these logs.

use std::{collections::BTreeMap, path::Path};

const IT: &str = "unbraid-gateway/tests/it";
const VIEW: &str = "unbraid-gateway/src/view/tests";
const GENERATION: &str = "unbraid-gateway/src/generation";
const LOG: &str = "unbraid-log/src";
const CONTRACT: &str = "unbraid-log/src/contract";
const PAGE: &str = "unbraid-gateway/tests/browser";
const COMMAND: &str = "unbraid-cli/tests/it/serve";

/// What was reported, and the tests: a directory below `crates`, and the function.
type Row = (&'static str, &'static [(&'static str, &'static str)]);

/// GATEWAY.md, section 12.
const REPORTS: &[Row] = &[
    (
        "resumable-stream 47: a stream never ends, because the message that says so was lost",
        &[
            (VIEW, "every_waiting_view_ends_when_the_log_is_sealed"),
            (
                LOG,
                "every_waiting_reader_is_woken_by_an_append_and_by_the_end",
            ),
        ],
    ),
    (
        "deer-flow 3932: a stream never ends, because its worker died",
        &[
            (
                GENERATION,
                "a_generation_that_is_killed_is_sealed_as_producer_lost",
            ),
            (
                GENERATION,
                "a_generation_that_panics_is_sealed_as_producer_lost",
            ),
            (IT, "readers_end_when_the_gateway_that_produced_is_gone"),
            (
                COMMAND,
                "a_gateway_that_is_killed_cuts_its_readers_and_its_upstream",
            ),
        ],
    ),
    (
        "assistant-ui 3979: the stream expires under a reader",
        &[
            (IT, "a_stream_does_not_expire_while_it_runs"),
            (LOG, "a_reader_continues_after_its_stream_has_expired"),
        ],
    ),
    (
        "resumable-stream 42, 45: a second of handshake with the producer; 44: a late resume is impossible",
        &[
            (IT, "a_late_reader_gets_everything_at_once"),
            (
                VIEW,
                "an_ended_stream_is_read_from_every_cursor_without_its_producer",
            ),
        ],
    ),
    (
        "Bifrost 5546: a dead upstream is reported as a clean [DONE]",
        &[
            (IT, "an_upstream_that_is_cut_never_ends_with_a_clean_done"),
            (IT, "a_connection_that_is_cut_ends_every_view_with_an_error"),
            (VIEW, "a_truncated_answer_never_ends_with_done"),
            (PAGE, "an_answer_that_is_cut_is_not_a_success"),
        ],
    ),
    (
        "LiteLLM 30245: the upstream runs on after the client of a stream left",
        &[
            (
                IT,
                "a_live_stream_closes_the_upstream_when_its_client_leaves",
            ),
            (
                IT,
                "a_generation_without_a_reader_is_cancelled_if_configured",
            ),
        ],
    ),
    (
        "LiteLLM 31499: the same before the first token",
        &[(
            IT,
            "a_request_without_a_key_is_closed_when_its_client_leaves_before_the_head",
        )],
    ),
    (
        "LiteLLM 37140, Bifrost 3164: the same without streaming",
        &[(
            IT,
            "an_answer_without_stream_closes_the_upstream_when_its_client_leaves",
        )],
    ),
    (
        "hermes-agent 85016: a reload destroys the work",
        &[
            (IT, "the_generation_continues_when_its_client_disconnects"),
            (IT, "a_reader_that_returns_in_time_keeps_the_generation"),
            (PAGE, "a_reload_and_a_second_tab_show_the_same"),
        ],
    ),
    (
        "LibreChat 14344, PageSpace 1698, omni 327: a retry or a returning phone starts a second, billed generation",
        &[
            (IT, "twenty_requests_with_one_key_are_one_upstream_request"),
            (
                IT,
                "the_request_continues_when_its_client_leaves_before_the_head",
            ),
            (IT, "reading_again_in_every_form_sends_nothing_upstream"),
        ],
    ),
    (
        "vercel/ai 18457, cloudflare/agents 1951: a replay is shown beside what was displayed",
        &[
            (
                VIEW,
                "a_snapshot_holds_everything_so_far_and_is_followed_by_the_rest",
            ),
            (VIEW, "a_snapshot_and_the_rest_are_the_whole_message"),
            (PAGE, "a_cut_connection_continues_where_it_was"),
        ],
    ),
    (
        "scale-agentex 241: deltas between two reads are dropped; upstash/realtime 23, agentscope 2123: a gap between history and live events",
        &[
            (
                IT,
                "readers_that_reconnect_at_every_event_lose_and_repeat_nothing",
            ),
            (IT, "every_reader_over_http_gets_the_projection_of_the_log"),
            (
                VIEW,
                "tail_begins_with_its_position_and_loses_nothing_after_it",
            ),
            (LOG, "readers_on_other_threads_miss_nothing"),
        ],
    ),
    (
        "deer-flow 4426: a gap is skipped silently",
        &[
            (IT, "a_gap_of_the_log_is_an_error_and_never_skipped"),
            (
                VIEW,
                "a_failed_log_ends_the_view_with_an_error_and_no_event",
            ),
            (CONTRACT, "a_record_that_leaves_a_gap_is_refused"),
        ],
    ),
    (
        "assistant-ui 7201, LibreChat 13117: a stale producer writes into an id that is used again",
        &[
            (
                LOG,
                "an_equal_record_is_a_duplicate_and_another_one_is_fenced",
            ),
            (CONTRACT, "an_id_is_opened_once"),
        ],
    ),
    (
        "mastra 19138, LibreChat 11086: one restart of the broker breaks every later run. A log in memory has none; any log may be down",
        &[(
            GENERATION,
            "an_answer_that_ends_while_the_log_is_down_is_written_whole_later",
        )],
    ),
    (
        "Dify 41712: a failure of the log loses the answer",
        &[(
            GENERATION,
            "while_the_log_is_down_a_cancel_closes_the_upstream_and_nothing_is_lost",
        )],
    ),
    (
        "frontmcp GHSA-84j6-jc92-77jm: another session's events are replayed",
        &[(
            IT,
            "a_stream_of_another_owner_is_answered_like_an_unknown_one",
        )],
    ),
    (
        "WaveHouse 471: CORS does not allow Last-Event-ID, so the client reconnects forever",
        &[(IT, "a_listed_origin_gets_cors_headers_and_another_none")],
    ),
    (
        "MCP SDK 2499: a cursor is lost when a resumed stream drops before its first event",
        &[
            (IT, "a_cursor_survives_a_connection_that_brought_nothing"),
            (
                VIEW,
                "a_reader_without_events_keeps_the_cursor_of_its_request",
            ),
        ],
    ),
    (
        "open-mem 10: localhost.evil.com passes a check of the prefix",
        &[(
            IT,
            "without_keys_only_loopback_hosts_and_known_origins_are_served",
        )],
    ),
    (
        "axum 2673, hyper 2787: one open stream of events blocks the shutdown",
        &[
            (
                IT,
                "a_drain_lets_generations_finish_and_closes_everything_else",
            ),
            (COMMAND, "sigterm_ends_the_command_although_a_view_is_open"),
        ],
    ),
    (
        "LiteLLM 36429: work on a disconnect freezes the event loop",
        &[(IT, "a_hundred_clients_that_leave_disturb_nobody")],
    ),
    (
        "Bifrost 5010: intermediaries cut idle streams; ag-ui 2105: and old ones, which pings do not prevent",
        &[
            (IT, "pings_are_one_line_and_come_only_after_silence"),
            (IT, "a_view_closes_after_its_age_and_a_post_does_not"),
            (
                IT,
                "a_proxy_that_cuts_every_connection_costs_no_event_and_no_request",
            ),
        ],
    ),
    (
        "onyx 12436: chunks of an empty kind without end pin a worker",
        &[(IT, "empty_events_without_end_do_not_starve_other_requests")],
    ),
    (
        "openagents 6058: reads are billed again on a replay",
        &[
            (IT, "reading_again_in_every_form_sends_nothing_upstream"),
            (IT, "get_and_delete_never_start_a_generation"),
        ],
    ),
];

/// GATEWAY.md, section 11, where the log is in memory.
const FAULTS: &[Row] = &[
    (
        "kill -9 of the producer and of the reader's gateway, which are one process",
        &[
            (
                COMMAND,
                "a_gateway_that_is_killed_cuts_its_readers_and_its_upstream",
            ),
            (
                PAGE,
                "a_restarted_gateway_that_has_lost_the_stream_is_reported",
            ),
        ],
    ),
    (
        "kill -9 of the client",
        &[(IT, "a_client_that_is_killed_costs_a_reader_and_no_answer")],
    ),
    (
        "SIGSTOP of the producer past its lease",
        &[
            (
                COMMAND,
                "a_gateway_that_was_suspended_past_its_lease_ends_every_stream",
            ),
            (
                LOG,
                "a_dropped_writer_is_lost_at_once_and_a_silent_one_after_its_lease",
            ),
        ],
    ),
    (
        "a reader that stops reading",
        &[
            (
                IT,
                "a_reader_that_does_not_read_is_disconnected_and_delays_nobody",
            ),
            (
                IT,
                "an_http2_stream_that_does_not_read_is_reset_and_its_connection_is_not",
            ),
        ],
    ),
    (
        "two gateways seal at once",
        &[
            (LOG, "the_first_end_is_kept"),
            (CONTRACT, "gateways_that_seal_at_once_agree"),
        ],
    ),
    ("an id is used twice", &[(CONTRACT, "an_id_is_opened_once")]),
    (
        "the same Idempotency-Key twenty times at once",
        &[(IT, "twenty_requests_with_one_key_are_one_upstream_request")],
    ),
    (
        "the clock moves by an hour: lifetimes follow the clock of tokio, which these tests move by days while the system's stays",
        &[
            (LOG, "a_stream_is_kept_for_its_ttl_and_is_expired_for_a_day"),
            (
                LOG,
                "a_stream_that_nobody_seals_expires_after_a_day_unless_its_producer_lives",
            ),
        ],
    ),
    (
        "a log that answers slowly",
        &[(GENERATION, "a_cancel_is_confirmed_once_the_log_has_it")],
    ),
    (
        "a full disk: the memory is full",
        &[(
            IT,
            "above_the_limit_on_memory_old_streams_are_evicted_and_then_requests_refused",
        )],
    ),
    (
        "a proxy that cuts each connection",
        &[(
            IT,
            "a_proxy_that_cuts_every_connection_costs_no_event_and_no_request",
        )],
    ),
    (
        "an upstream that is cut",
        &[
            (IT, "a_connection_that_is_cut_ends_every_view_with_an_error"),
            (IT, "a_body_without_done_ends_every_view_with_an_error"),
            (IT, "half_an_event_is_not_passed_on"),
            (
                IT,
                "an_aggregate_of_an_answer_that_was_cut_has_no_finish_reason_that_says_stop",
            ),
        ],
    ),
    (
        "an upstream that stalls",
        &[
            (IT, "an_upstream_that_stalls_times_out"),
            (
                IT,
                "an_upstream_that_falls_silent_ends_every_view_with_an_error",
            ),
            (IT, "a_whole_answer_that_stalls_is_504"),
        ],
    ),
    (
        "an upstream that is silent",
        &[
            (IT, "an_upstream_that_is_silent_after_its_head_times_out"),
            (
                IT,
                "an_upstream_that_cannot_be_reached_is_502_and_one_that_is_silent_504",
            ),
        ],
    ),
    (
        "an upstream that refuses",
        &[
            (IT, "a_refusal_is_passed_through_and_creates_no_stream"),
            (IT, "a_refused_request_frees_its_key"),
        ],
    ),
    (
        "an upstream that is 1 GiB long",
        &[
            (IT, "a_stream_of_a_gibibyte_ends_at_its_limit"),
            (IT, "a_limit_ends_every_view_with_an_error"),
            (IT, "usage_without_end_ends_the_stream_at_its_limit"),
        ],
    ),
    (
        "an event of 40 MiB",
        &[(IT, "one_event_of_40_mib_ends_the_stream_at_its_limit")],
    ),
];

/// The source text of each directory. A module is a file beside it, or all files in it.
fn sources() -> BTreeMap<&'static str, String> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let all = REPORTS.iter().chain(FAULTS).flat_map(|(_, tests)| *tests);
    let mut sources = BTreeMap::new();
    for (directory, _) in all {
        sources.entry(*directory).or_insert_with(|| {
            let path = crates.join(directory);
            let mut text = std::fs::read_to_string(path.with_extension("rs")).unwrap_or_default();
            read_into(&path, &mut text);
            text
        });
    }
    sources
}

fn read_into(directory: &Path, text: &mut String) {
    for entry in std::fs::read_dir(directory).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read_into(&path, text);
        } else {
            text.push_str(&std::fs::read_to_string(path).unwrap_or_default());
        }
    }
}

#[test]
fn every_report_and_every_fault_has_tests_that_exist() {
    let sources = sources();
    for (what, tests) in REPORTS.iter().chain(FAULTS) {
        assert!(!tests.is_empty(), "{what}");
        for (directory, name) in *tests {
            let function = format!("fn {name}(");
            assert!(
                sources[directory].contains(&function),
                "{what}: {directory}: {name}"
            );
        }
    }
}
