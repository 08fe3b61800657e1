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

use super::{Pressed, View};

/// A view of events, in a terminal that is not there.
struct Shown {
    view: View,
    terminal: Terminal<TestBackend>,
    now: Duration,
}

impl Shown {
    fn new(width: u16, height: u16) -> Self {
        Self {
            view: View::new("", true),
            terminal: Terminal::new(TestBackend::new(width, height)).unwrap(),
            now: Duration::ZERO,
        }
    }

    /// An event of a choice; between two events 50 ms pass.
    fn event(&mut self, choice: u32, event: Event<&str>) -> &mut Self {
        let stamped = Sequenced::new(
            Some(ChoiceIndex(choice)),
            0,
            Position::default(),
            event.map(Into::into),
        );
        self.view.apply(&stamped, self.now);
        self.now += Duration::from_millis(50);
        self.view.tick(self.now);
        self
    }

    fn say(&mut self, choice: u32, text: &str) -> &mut Self {
        self.event(choice, Event::Content(text))
    }

    fn call(&mut self, choice: u32, call: u32, name: &str, arguments: &str) -> &mut Self {
        self.event(
            choice,
            Event::ToolCallStart {
                call_index: CallIndex(call),
                wire_index: None,
                id: None,
                name,
                kind: CallKind::Function,
            },
        );
        let text = arguments;
        self.event(
            choice,
            Event::ToolCallArguments {
                call_index: CallIndex(call),
                text,
            },
        )
    }

    fn press(&mut self, code: KeyCode) -> &mut Self {
        let key = KeyEvent::new(code, KeyModifiers::NONE);
        assert_eq!(self.view.press(key), Pressed::Seen);
        self
    }

    fn resize(&mut self, width: u16, height: u16) -> &mut Self {
        self.terminal.backend_mut().resize(width, height);
        self
    }

    /// What stands on the screen, without white space at the ends of lines.
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
    fn has(&mut self, text: &str) -> &mut Self {
        let screen = self.screen().join("\n");
        assert!(screen.contains(text), "{text}:\n{screen}");
        self
    }

    #[track_caller]
    fn has_not(&mut self, text: &str) -> &mut Self {
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
fn choices_stand_side_by_side_in_the_order_of_their_indices() {
    let mut shown = Shown::new(60, 6);
    shown.say(1, "one two three four five six seven eight");
    shown.say(0, "zero").event(0, Event::Finish("stop"));
    shown.event(0, Event::End(ChoiceEnd::Finished(FinishReason::Stop)));
    shown.check(&[
        "┌ [0] finished (stop) ───────┐┌ [1] writing ───────────────┐",
        "│zero                        ││one two three four five six │",
        "│                            ││seven eight                 │",
        "│                            ││                            │",
        "└────────────────────────────┘└────────────────────────────┘",
        " 1 of 2 choices open  5 tokens/s  0.2 s",
    ]);
}

#[test]
fn a_title_stands_above_and_help_where_there_is_room() {
    let mut shown = Shown::new(100, 5);
    shown.view.title = "A question".into();
    shown.say(0, "x");
    let screen = shown.screen();
    assert_eq!(screen[0], "A question");
    assert!(
        screen[4].starts_with(" 1 of 1 choice open  0.1 s"),
        "{screen:?}"
    );
    assert!(screen[4].ends_with("q quit"), "{screen:?}");
}

#[test]
fn a_narrow_terminal_has_a_grid_and_a_small_one_scrolls_it() {
    let mut shown = Shown::new(60, 15);
    for choice in 0..6 {
        shown.say(choice, "x");
    }
    shown.has("[0]").has("[3]").has_not("[4]").has("  4 shown");
    for _ in 0..5 {
        shown.press(KeyCode::Tab);
    }
    // The first key only shows which choice is selected.
    shown.has("[5]").has("[2]").has_not("[0]");
    shown.press(KeyCode::Tab).press(KeyCode::Tab).has("[0]");
    shown.press(KeyCode::BackTab).has("[5]");
    shown.press(KeyCode::Enter).has("[5]").has_not("[4]");
    shown.press(KeyCode::Esc).has("[4]");
    shown.resize(200, 15).has("[0]").has("[5]").has_not("shown");
}

#[test]
fn reasoning_is_dimmed_and_a_refusal_is_marked() {
    let mut shown = Shown::new(40, 8);
    shown.event(0, Event::Reasoning("hm")).say(0, "Zo");
    shown.event(0, Event::Refusal("No."));
    shown
        .has("│~ hm")
        .has("│Zo")
        .has("│! No.")
        .has("[0] refusing");
    assert_eq!(shown.style("h").0, Modifier::DIM);
    assert_eq!(shown.style("Z").0, Modifier::empty());
    assert_eq!(shown.style("N").0, Modifier::BOLD);
    assert_eq!(shown.style("┌").1, Color::Cyan);
}

#[test]
fn calls_grow_side_by_side() {
    let mut shown = Shown::new(40, 14);
    shown.say(0, "Let me look.");
    shown.call(0, 0, "forecast", "{\"city\":\"Os");
    shown.call(0, 1, "tides", "{\"days\":[1,2");
    let text = "lo\"}";
    shown.event(
        0,
        Event::ToolCallArguments {
            call_index: CallIndex(0),
            text,
        },
    );
    shown.check(&[
        "┌ [0] calling 17/s ────────────────────┐",
        "│Let me look.                          │",
        "│> forecast {                          │",
        "│  \"city\": \"Oslo\"                      │",
        "│}                                     │",
        "│> tides {                             │",
        "│  \"days\": [                           │",
        "│    1,                                │",
        "│    2                                 │",
        "│                                      │",
        "│                                      │",
        "│                                      │",
        "└──────────────────────────────────────┘",
        " 1 of 1 choice open  17 tokens/s  0.3 s",
    ]);
    assert_eq!(shown.style("f").0, Modifier::BOLD, "the name");
    let (call, status) = (1, CallStatus::Truncated);
    shown.event(
        0,
        Event::ToolCallDone {
            call_index: CallIndex(call),
            status,
        },
    );
    shown.has("│    2 (truncated)");
}

#[test]
fn arguments_that_are_no_json_are_shown_as_they_came() {
    let mut shown = Shown::new(40, 8);
    shown.call(0, 0, "f", "{\"a\":1,").has("│  \"a\": 1,");
    let (call, text) = (0, "oops}");
    shown.event(
        0,
        Event::ToolCallArguments {
            call_index: CallIndex(call),
            text,
        },
    );
    shown.has("│> f {\"a\":1,oops}").has_not("│  \"a\"");
}

#[test]
fn a_call_that_is_told_twice_is_shown_once() {
    let mut shown = Shown::new(40, 12);
    shown.call(0, 0, "f", "{\"a\":1}");
    let start = Event::ToolCallStart {
        call_index: CallIndex(1),
        wire_index: None,
        id: None,
        name: "f",
        kind: CallKind::LegacyFunction,
    };
    shown.event(0, start);
    let (call, text) = (1, "{\"a\":1}");
    shown.event(
        0,
        Event::ToolCallArguments {
            call_index: CallIndex(call),
            text,
        },
    );
    shown.event(0, Event::End(ChoiceEnd::DoneWithoutFinish));
    let screen = shown.screen().join("\n");
    assert_eq!(screen.matches("> f {").count(), 1, "{screen}");
}

#[test]
fn the_end_is_followed_until_somebody_scrolls() {
    let mut shown = Shown::new(30, 7);
    shown.say(0, &numbered(20)).has("line 19").has(" 20/20 ");
    shown.say(0, "line 20\n").has("line 20");
    shown
        .press(KeyCode::Up)
        .has("line 19")
        .has_not("line 20")
        .has(" 20/21 ");
    shown.say(0, "line 21\n").has("line 19").has_not("line 20");
    shown
        .press(KeyCode::PageUp)
        .has("line 14")
        .has_not("line 17");
    shown.press(KeyCode::Home).has("line 0").has_not("line 4");
    shown.press(KeyCode::Down).has("line 4").has_not("line 0");
    shown
        .press(KeyCode::PageDown)
        .has("line 7")
        .has_not("line 3");
    shown.press(KeyCode::End).has("line 21");
    shown.say(0, "line 22\n").has("line 22");
    for _ in 0..9 {
        shown.press(KeyCode::PageUp);
    }
    shown.has("line 0");
    for _ in 0..9 {
        shown.press(KeyCode::PageDown);
    }
    shown.say(0, "line 23\n").has("line 23");
}

#[test]
fn another_size_keeps_what_is_read() {
    let mut shown = Shown::new(30, 7);
    let text: String = (0..40)
        .map(|k| format!("{k} some words that wrap at thirty\n"))
        .collect();
    shown.say(0, &text);
    shown.screen();
    shown.press(KeyCode::Home).screen();
    for _ in 0..8 {
        shown.press(KeyCode::Down).screen();
    }
    let first = shown.screen()[1].clone();
    assert!(first.starts_with("│4 some words"), "{first}");
    assert!(shown.resize(60, 9).screen()[1].starts_with("│4 some words"));
    assert!(shown.resize(20, 5).screen()[1].starts_with("│4 some words"));
    shown.resize(1, 1).screen();
    shown
        .resize(300, 100)
        .has("│0 some words")
        .has("│39 some words");
}

#[test]
fn a_choice_that_appears_before_the_selected_one_moves_it() {
    let mut shown = Shown::new(90, 7);
    shown.say(3, &numbered(20)).say(5, "five");
    shown.screen();
    shown.press(KeyCode::Home).has("line 0");
    shown.say(1, "one");
    shown.screen();
    shown.press(KeyCode::End).has("line 19");
}

#[test]
fn nothing_commands_the_terminal() {
    let mut shown = Shown::new(70, 9);
    shown.say(0, "a\u{1b}[2Jb\u{9b}\u{202e}");
    shown.call(0, 0, "f\u{1b}[m\n", "{\"\u{1b}\":1}");
    shown.event(0, Event::Finish("\u{1b}]0;x\u{7}"));
    shown.view.title = View::new("\u{1b}[m", true).title;
    for row in shown.screen() {
        assert!(!row.contains(char::is_control), "{row:?}");
    }
    shown
        .has("a\\u{1b}[2Jb\\u{9b}\\u{202e}")
        .has("(\\u{1b}]0;x\\u{7})");
}

#[test]
fn the_close_stops_the_clock() {
    let mut shown = Shown::new(60, 5);
    shown.say(0, "a").say(0, "b").say(0, "c");
    shown.event(0, Event::End(ChoiceEnd::Interrupted));
    shown.view.close("closed", Duration::from_millis(600));
    shown.view.tick(Duration::from_secs(9));
    shown
        .has(" 1 choice, stream closed  3 tokens/s  0.6 s")
        .has("[0] interrupted 13/s");
}

#[test]
fn q_and_ctrl_c_quit_and_other_letters_do_nothing() {
    let mut view = View::new("", true);
    let key = |code, modifiers| KeyEvent::new(code, modifiers);
    assert_eq!(
        view.press(key(KeyCode::Char('x'), KeyModifiers::NONE)),
        Pressed::Unknown
    );
    assert!(!view.is_used());
    assert_eq!(
        view.press(key(KeyCode::Char('q'), KeyModifiers::NONE)),
        Pressed::Quit
    );
    assert_eq!(
        view.press(key(KeyCode::Char('c'), KeyModifiers::CONTROL)),
        Pressed::Quit
    );
    for code in [
        KeyCode::Up,
        KeyCode::Tab,
        KeyCode::Enter,
        KeyCode::BackTab,
        KeyCode::PageDown,
    ] {
        assert_eq!(view.press(key(code, KeyModifiers::NONE)), Pressed::Seen);
    }
    assert!(view.is_used());
}

#[test]
fn every_fixture_can_be_drawn_at_any_time_and_size() {
    let sizes = [(80, 24), (30, 9), (7, 3), (200, 60)];
    for fixture in Fixture::all() {
        let mut shown = Shown::new(80, 24);
        let mut demux = Demux::new(Config::default());
        let mut drawn = 0;
        let lines = fixture.bytes.split_inclusive(|&byte| byte == b'\n');
        for (line, &(width, height)) in lines.take(400).zip(sizes.iter().cycle()) {
            demux.feed(line);
            while let Some(stamped) = demux.next_event() {
                shown.view.apply(&stamped.map(Into::into), shown.now);
            }
            drawn += 1;
            if drawn % 5 == 0 {
                for row in shown.resize(width, height).screen() {
                    assert!(!row.contains(char::is_control), "{}: {row:?}", fixture.name);
                }
            }
        }
    }
}
