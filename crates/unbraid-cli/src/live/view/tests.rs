mod keys;
mod labels;
mod picture;

use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::{
    Terminal,
    backend::TestBackend,
    style::{Color, Modifier},
};
use unbraid::{
    CallIndex, CallKind, CallStatus, ChoiceEnd, ChoiceIndex, Config, Demux, Event, FinishReason,
    Position, Sequenced,
};
use unbraid_testkit::fixture::Fixture;

use super::{KeyAction, View};
use crate::palette::Palette;

/// A view in a terminal that is only a buffer.
struct TestView {
    view: View,
    terminal: Terminal<TestBackend>,
    now: Duration,
}

impl TestView {
    fn new(width: u16, height: u16) -> Self {
        Self {
            view: View::new("", true, Palette::Ansi256),
            terminal: Terminal::new(TestBackend::new(width, height)).unwrap(),
            now: Duration::ZERO,
        }
    }

    /// Applies an event of a choice. Events are 50 ms apart.
    fn apply(&mut self, choice: u32, event: Event<&str>) -> &mut Self {
        let event = Sequenced::new(
            Some(ChoiceIndex(choice)),
            0,
            Position::default(),
            event.map(Into::into),
        );
        self.view.apply(&event, self.now);
        self.now += Duration::from_millis(50);
        self.view.tick(self.now);
        self
    }

    fn push_text(&mut self, choice: u32, text: &str) -> &mut Self {
        self.apply(choice, Event::Content(text))
    }

    fn start_call(
        &mut self,
        choice: u32,
        call_index: u32,
        name: &str,
        arguments: &str,
    ) -> &mut Self {
        let call_index = CallIndex(call_index);
        self.apply(
            choice,
            Event::ToolCallStart {
                call_index,
                wire_index: None,
                id: None,
                name,
                kind: CallKind::Function,
            },
        );
        let text = arguments;
        self.apply(choice, Event::ToolCallArguments { call_index, text })
    }

    fn press(&mut self, code: KeyCode) -> &mut Self {
        let key = KeyEvent::new(code, KeyModifiers::NONE);
        assert_eq!(self.view.press(key), KeyAction::Redraw);
        self
    }

    fn resize(&mut self, width: u16, height: u16) -> &mut Self {
        self.terminal.backend_mut().resize(width, height);
        self
    }

    /// Draws the view, and returns its lines without trailing white space.
    fn screen(&mut self) -> Vec<String> {
        self.terminal.draw(|frame| self.view.draw(frame)).unwrap();
        let buffer = self.terminal.backend().buffer();
        let width = usize::from(buffer.area.width);
        let rows = buffer.content.chunks(width);
        rows.map(|row| {
            let row: String = row.iter().map(|cell| cell.symbol()).collect();
            row.trim_end().to_owned()
        })
        .collect()
    }

    #[track_caller]
    fn check(&mut self, expected: &[&str]) {
        let screen = self.screen();
        assert_eq!(screen, expected, "\n{}", screen.join("\n"));
    }

    #[track_caller]
    fn contains(&mut self, text: &str) -> &mut Self {
        let screen = self.screen().join("\n");
        assert!(screen.contains(text), "{text}:\n{screen}");
        self
    }

    #[track_caller]
    fn lacks(&mut self, text: &str) -> &mut Self {
        let screen = self.screen().join("\n");
        assert!(!screen.contains(text), "{text}:\n{screen}");
        self
    }

    /// The modifiers and the colour of the first cell with this symbol.
    fn style(&mut self, symbol: &str) -> (Modifier, Color) {
        self.screen();
        let cells = &self.terminal.backend().buffer().content;
        let cell = cells.iter().find(|cell| cell.symbol() == symbol).unwrap();
        (cell.modifier, cell.fg)
    }
}

fn numbered(lines: usize) -> String {
    (0..lines).map(|k| format!("line {k}\n")).collect()
}

#[test]
fn choices_are_side_by_side_sorted_by_index() {
    let mut test = TestView::new(60, 6);
    test.push_text(1, "one two three four five six seven eight");
    test.push_text(0, "zero").apply(0, Event::Finish("stop"));
    test.apply(0, Event::End(ChoiceEnd::Finished(FinishReason::Stop)));
    test.check(&[
        "┌ [0] ✓ stop ────────────────┐┌ [1] writing ───────────────┐",
        "│zero                        ││one two three four five six │",
        "│                            ││seven eight                 │",
        "│                            ││                            │",
        "└────────────────────────────┘└────────────────────────────┘",
        " 1 of 2 choices open  5 tokens/s  elapsed 0.2 s      q quit",
    ]);
}

#[test]
fn the_title_is_at_the_top_and_help_is_shown_if_there_is_room() {
    let mut test = TestView::new(100, 7);
    test.view.title = "A question".into();
    test.push_text(0, "x");
    let screen = test.screen();
    assert_eq!(screen[0], "A question", "{screen:?}");
    assert!(
        screen[6].starts_with(" 1 of 1 choice open  elapsed 0.1 s"),
        "{screen:?}"
    );
    assert!(
        screen[6].ends_with("tab choice  ↑↓ scroll  enter zoom  q quit"),
        "{screen:?}"
    );
}

#[test]
fn a_narrow_terminal_shows_a_grid_and_a_small_one_scrolls_it() {
    let mut test = TestView::new(60, 20);
    for choice in 0..6 {
        test.push_text(choice, "x");
    }
    test.contains("[0] writing")
        .contains("[3] writing")
        .lacks("[4] writing")
        .contains("  4 shown");
    for _ in 0..5 {
        test.press(KeyCode::Tab);
    }
    // The first key only shows which choice is selected.
    test.contains("[5] writing")
        .contains("[2] writing")
        .lacks("[0] writing");
    test.press(KeyCode::Tab)
        .press(KeyCode::Tab)
        .contains("[0] writing");
    test.press(KeyCode::BackTab).contains("[5] writing");
    test.press(KeyCode::Enter)
        .contains("[5] writing")
        .lacks("[4] writing");
    test.press(KeyCode::Esc).contains("[4] writing");
    test.resize(200, 20)
        .contains("[0] writing")
        .contains("[5] writing")
        .lacks("shown");
}

#[test]
fn reasoning_is_dimmed_and_a_refusal_is_marked() {
    let mut test = TestView::new(40, 8);
    test.apply(0, Event::Reasoning("hm")).push_text(0, "Zo");
    test.apply(0, Event::Refusal("No."));
    test.contains("~ hm")
        .contains("\nZo")
        .contains("\n! No.")
        .contains("[0] refusing");
    assert_eq!(test.style("h").0, Modifier::DIM);
    assert_eq!(test.style("Z").0, Modifier::empty());
    assert_eq!(test.style("N").0, Modifier::BOLD);
    assert_eq!(test.style("─").1, Color::Indexed(33));
}

#[test]
fn parallel_calls_grow_at_the_same_time() {
    let mut test = TestView::new(40, 14);
    test.push_text(0, "Let me look.");
    test.start_call(0, 0, "forecast", "{\"city\":\"Os");
    test.start_call(0, 1, "tides", "{\"days\":[1,2");
    let text = "lo\"}";
    test.apply(
        0,
        Event::ToolCallArguments {
            call_index: CallIndex(0),
            text,
        },
    );
    test.check(&[
        "[0]{\"days\":[1,2 [0]lo\"}",
        "── in: 6 deltas  out: 1 choice ▼────────",
        " [0] calling  17 tokens/s ──────────────",
        "Let me look.",
        "> forecast {",
        "  \"city\": \"Oslo\"",
        "}",
        "> tides {",
        "  \"days\": [",
        "    1,",
        "    2",
        "────────────────────────────────────────",
        " 1 of 1 choice open  elapsed 0.3 s",
        " tab choice  enter zoom  q quit",
    ]);
    // A string is in the colour of the choice.
    assert_eq!(test.style("O"), (Modifier::empty(), Color::Indexed(33)));
    assert_eq!(test.style("f").0, Modifier::BOLD, "the name");
    let (call_index, status) = (CallIndex(1), CallStatus::Truncated);
    test.apply(0, Event::ToolCallDone { call_index, status });
    test.contains("    2 (truncated)");
}

#[test]
fn arguments_that_are_not_json_are_shown_unchanged() {
    let mut test = TestView::new(40, 8);
    test.start_call(0, 0, "f", "{\"a\":1,")
        .contains("\n  \"a\": 1,");
    let (call_index, text) = (CallIndex(0), "oops}");
    test.apply(0, Event::ToolCallArguments { call_index, text });
    test.contains("\n> f {\"a\":1,oops}").lacks("  \"a\"");
}

#[test]
fn a_repeated_legacy_call_is_shown_once() {
    let mut test = TestView::new(40, 12);
    test.start_call(0, 0, "f", "{\"a\":1}");
    let start = Event::ToolCallStart {
        call_index: CallIndex(1),
        wire_index: None,
        id: None,
        name: "f",
        kind: CallKind::LegacyFunction,
    };
    test.apply(0, start);
    let (call_index, text) = (CallIndex(1), "{\"a\":1}");
    test.apply(0, Event::ToolCallArguments { call_index, text });
    test.apply(0, Event::End(ChoiceEnd::DoneWithoutFinish));
    let screen = test.screen().join("\n");
    assert_eq!(screen.matches("> f {").count(), 1, "{screen}");
}

#[test]
fn the_pane_follows_the_end_until_the_user_scrolls() {
    let mut test = TestView::new(30, 7);
    test.push_text(0, &numbered(20))
        .contains("line 19")
        .contains(" row 20 of 20");
    test.push_text(0, "line 20\n").contains("line 20");
    test.press(KeyCode::Up)
        .contains("line 19")
        .lacks("line 20")
        .contains(" row 20 of 21");
    test.push_text(0, "line 21\n")
        .contains("line 19")
        .lacks("line 20");
    test.press(KeyCode::PageUp)
        .contains("line 14")
        .lacks("line 17");
    test.press(KeyCode::Home).contains("line 0").lacks("line 4");
    test.press(KeyCode::Down).contains("line 4").lacks("line 0");
    test.press(KeyCode::PageDown)
        .contains("line 7")
        .lacks("line 3");
    test.press(KeyCode::End).contains("line 21");
    test.push_text(0, "line 22\n").contains("line 22");
    for _ in 0..9 {
        test.press(KeyCode::PageUp);
    }
    test.contains("line 0");
    for _ in 0..9 {
        test.press(KeyCode::PageDown);
    }
    test.push_text(0, "line 23\n").contains("line 23");
}

#[test]
fn resizing_keeps_the_scroll_position() {
    let mut test = TestView::new(30, 7);
    let text: String = (0..40)
        .map(|k| format!("{k} some words that wrap at thirty\n"))
        .collect();
    test.push_text(0, &text);
    test.screen();
    test.press(KeyCode::Home).screen();
    for _ in 0..8 {
        test.press(KeyCode::Down).screen();
    }
    let first = test.screen()[1].clone();
    assert!(first.starts_with("4 some words"), "{first}");
    assert!(test.resize(60, 9).screen()[1].starts_with("4 some words"));
    assert!(test.resize(20, 5).screen()[1].starts_with("4 some words"));
    test.resize(1, 1).screen();
    test.resize(300, 100)
        .contains("\n0 some words")
        .contains("\n39 some words");
}

#[test]
fn a_new_choice_before_the_selected_one_keeps_the_selection() {
    let mut test = TestView::new(90, 7);
    test.push_text(3, &numbered(20)).push_text(5, "five");
    test.screen();
    test.press(KeyCode::Home).contains("line 0");
    test.push_text(1, "one");
    test.screen();
    test.press(KeyCode::End).contains("line 19");
}

#[test]
fn control_characters_are_escaped() {
    let mut test = TestView::new(90, 24);
    test.push_text(0, "a\u{1b}[2Jb\u{9b}\u{202e}");
    test.start_call(0, 0, "f\u{1b}[m\n", "{\"\u{1b}\":1}");
    let reason = FinishReason::from("\u{1b}]0;x\u{7}");
    test.apply(0, Event::End(ChoiceEnd::Finished(reason)));
    test.view.title = View::new("\u{1b}[m", true, Palette::None).title;
    for row in test.screen() {
        assert!(!row.contains(char::is_control), "{row:?}");
    }
    test.contains("a\\u{1b}[2Jb\\u{9b}\\u{202e}")
        .contains("✓ \\u{1b}]0;x\\u{7}");
}

#[test]
fn the_end_of_the_stream_stops_the_clock() {
    let mut test = TestView::new(60, 5);
    test.push_text(0, "a").push_text(0, "b").push_text(0, "c");
    test.apply(0, Event::End(ChoiceEnd::Interrupted));
    test.view.close("closed", Duration::from_millis(600));
    test.view.tick(Duration::from_secs(9));
    test.contains(" 1 choice, stream closed  3 tokens/s  elapsed 0.6 s")
        .contains("[0] ✗ interrupted  13 tokens/s");
}

#[test]
fn q_and_ctrl_c_quit_and_other_letters_are_ignored() {
    let mut view = View::new("", true, Palette::Ansi256);
    let key = |code, modifiers| KeyEvent::new(code, modifiers);
    assert_eq!(
        view.press(key(KeyCode::Char('x'), KeyModifiers::NONE)),
        KeyAction::Ignore
    );
    assert!(!view.is_used());
    assert_eq!(
        view.press(key(KeyCode::Char('q'), KeyModifiers::NONE)),
        KeyAction::Quit
    );
    assert_eq!(
        view.press(key(KeyCode::Char('c'), KeyModifiers::CONTROL)),
        KeyAction::Quit
    );
    for code in [
        KeyCode::Up,
        KeyCode::Tab,
        KeyCode::Enter,
        KeyCode::BackTab,
        KeyCode::PageDown,
    ] {
        assert_eq!(view.press(key(code, KeyModifiers::NONE)), KeyAction::Redraw);
    }
    assert!(view.is_used());
}

#[test]
fn every_fixture_is_drawn_at_any_time_and_size() {
    let sizes = [(80, 24), (30, 9), (7, 3), (200, 60)];
    for fixture in Fixture::all() {
        let mut test = TestView::new(80, 24);
        let mut demux = Demux::new(Config::default());
        let mut line_count = 0;
        let lines = fixture.bytes.split_inclusive(|&byte| byte == b'\n');
        for (line, &(width, height)) in lines.take(400).zip(sizes.iter().cycle()) {
            demux.feed(line);
            while let Some(event) = demux.next_event() {
                test.view.apply(&event.map(Into::into), test.now);
            }
            line_count += 1;
            if line_count % 5 == 0 {
                for row in test.resize(width, height).screen() {
                    assert!(!row.contains(char::is_control), "{}: {row:?}", fixture.name);
                }
            }
        }
    }
}
