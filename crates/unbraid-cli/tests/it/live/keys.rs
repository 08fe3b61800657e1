//! The keys of the view.

use std::time::Duration;

use tokio::time::Instant;
use unbraid_testkit::{
    fixture::workspace_root,
    terminal::{Left, Terminal},
};

use super::{LiveStream, check_restored};
use crate::UNBRAID;

/// Presses `q`, which cancels a stream that is not over.
fn quit(terminal: Terminal, code: i32) -> Left {
    terminal.press("q");
    let left = terminal.end();
    check_restored(&left, code);
    left
}

#[test]
fn the_hints_are_visible_on_small_and_large_terminals() {
    for size in [(24, 80), (40, 120), (50, 200)] {
        let terminal = Terminal::run(UNBRAID, ["demo"], size);
        let screen = terminal.wait_for("q quit");
        for hint in [
            "tab choice",
            "\u{2191}\u{2193} scroll",
            "enter zoom",
            "e raw events",
            "space pause",
            "+/- speed",
        ] {
            assert!(screen.contains(hint), "{hint}: {screen}");
        }
        terminal.wait_for("4 of 4 choices open");
        quit(terminal, 3);
    }
}

#[test]
fn space_stops_a_replay_and_lets_it_go_on() {
    let terminal = Terminal::run(UNBRAID, ["demo", "--stay"], (40, 120));
    terminal.wait_for("4 of 4 choices open");
    terminal.press(" ");
    let paused = terminal.wait_for("space play");
    assert!(paused.contains(" paused  4 of 4 choices open"), "{paused}");
    // At this speed it would be over at once if it were not paused.
    terminal.press(&"+".repeat(10));
    terminal.wait_for("speed 1024x");
    terminal.press("-");
    let screen = terminal.wait_for("speed 512x");
    assert!(!screen.contains("stream closed"), "{screen}");
    terminal.press(" ");
    terminal.wait_for("4 choices, stream closed");
    quit(terminal, 0);
}

#[test]
fn plus_and_minus_change_the_speed_of_a_recording() {
    let path = workspace_root()
        .join("tests/fixtures/openai_chat/openai-t28-t43-parallel-tools-two-choices.sse");
    let args = ["watch", "--speed", "0.05", path.to_str().unwrap()];
    let terminal = Terminal::run(UNBRAID, args, (24, 80));
    terminal.wait_for("speed 1x");
    terminal.press("-");
    terminal.wait_for("speed 0.5x");
    let start = Instant::now();
    // At its own speed it would take minutes.
    terminal.press(&"+".repeat(16));
    check_restored(&terminal.end(), 0);
    assert!(start.elapsed() < Duration::from_secs(20));
}

#[test]
fn a_live_stream_is_frozen_while_it_goes_on() {
    let mut stream = LiveStream::watch(&[], (24, 80));
    stream.content(0, "one ");
    stream.terminal.wait_for("[0]one");
    stream.terminal.press(" ");
    let screen = stream.terminal.wait_for("space play");
    assert!(!screen.contains("+/- speed"), "{screen}");
    stream.content(0, "two ");
    stream.terminal.press("e");
    let screen = stream.terminal.wait_for("raw events \u{2500}");
    assert!(!screen.contains("two"), "{screen}");
    stream.terminal.press(" ");
    stream.terminal.wait_for("[0]two");
    stream.finish(0);
    let terminal = stream.done();
    terminal.wait_for("stream closed");
    quit(terminal, 0);
}

#[test]
fn a_signal_ends_a_frozen_view() {
    let mut stream = LiveStream::watch(&[], (24, 80));
    stream.content(0, "one ");
    stream.terminal.wait_for("[0]one");
    stream.terminal.press(" ");
    stream.terminal.wait_for("space play");
    let id = stream.terminal.id().to_string();
    let sent = std::process::Command::new("kill")
        .args(["-INT", &id])
        .status();
    assert!(sent.unwrap().success());
    check_restored(&stream.terminal.end(), 3);
}

#[test]
fn a_zoomed_choice_scrolls_and_shows_its_raw_events() {
    for size in [(24, 80), (40, 120), (50, 200)] {
        let mut stream = LiveStream::watch(&[], size);
        for k in 0..99 {
            stream.content(0, &format!("line {k}\n"));
        }
        stream.content(1, "other");
        stream.content(0, "the end");
        stream.terminal.wait_for("the end");
        stream.terminal.press("\r");
        stream.terminal.wait_for("raw events of this choice");
        let screen = stream.terminal.wait_for("\"seq\":100,");
        assert!(!screen.contains("\"choice\":1,"), "{screen}");
        stream.terminal.press("\u{1b}[H");
        stream.terminal.wait_for("line 1 ");
        stream.terminal.press("e");
        stream
            .terminal
            .wait(|screen| !screen.contents().contains("raw events of"));
        stream.terminal.press("\re");
        let screen = stream.terminal.wait_for("\"choice\":1,");
        assert!(screen.contains("\"choice\":0,"), "{screen}");
        quit(stream.terminal, 3);
    }
}

#[test]
fn tiny_terminals_and_many_choices_are_drawn() {
    for size in [(5, 20), (1, 1), (3, 200), (24, 9)] {
        let mut stream = LiveStream::watch(&[], size);
        for choice in 0..64 {
            stream.content(
                choice,
                "\u{96e8}\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467} wide ",
            );
        }
        stream.terminal.wait(|screen| !screen.contents().is_empty());
        stream.terminal.resize((24, 80));
        stream.terminal.wait_for("64 of 64 choices open");
        stream.terminal.press("\t\t\r");
        stream.terminal.wait_for("raw events of this choice");
        stream.terminal.resize(size);
        stream.terminal.resize((50, 200));
        stream.terminal.wait_for("64 of 64 choices open");
        stream.terminal.press("\u{3}");
        check_restored(&stream.terminal.end(), 3);
    }
}

#[test]
fn the_end_of_a_long_title_is_never_cut_off() {
    let mut stream = LiveStream::watch(&[], (24, 80));
    stream.content(0, "zero");
    stream.content(1, "one");
    stream.content(2, "two");
    stream.chunk(&serde_json::json!({
        "index": 1, "delta": {}, "finish_reason": format!("a_reason_{}_that_is_long", "x".repeat(80)),
    }));
    stream.content(0, " and on");
    stream.terminal.wait(|screen| {
        let contents = screen.contents();
        contents.contains("[1] \u{2713} a_rea") && contents.contains("that_is_long ")
    });
    quit(stream.terminal, 3);
}
