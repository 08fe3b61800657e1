//! Keys that control a replay, and what is shown on request.

use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::{KeyAction, TestView, View};
use crate::{input::Playback, palette::Palette};

#[test]
fn space_freezes_a_live_stream_and_pauses_a_replay() {
    let key = |code| KeyEvent::new(KeyCode::Char(code), KeyModifiers::NONE);
    let mut live = View::new("", true, Palette::None);
    assert_eq!(
        live.press(key('+')),
        KeyAction::Ignore,
        "a live stream has its own speed"
    );
    assert_eq!(live.press(key(' ')), KeyAction::Redraw);
    assert!(live.is_paused() && live.is_frozen());
    live.press(key(' '));
    assert!(!live.is_paused());
    live.close("closed", Duration::ZERO);
    assert_eq!(
        live.press(key(' ')),
        KeyAction::Ignore,
        "there is nothing to pause"
    );
}

#[tokio::test(start_paused = true)]
async fn keys_control_a_replay() {
    let key = |code| KeyEvent::new(KeyCode::Char(code), KeyModifiers::NONE);
    let playback = Playback::new(1.0);
    let mut view = View::new("", true, Palette::None).with_playback(Some(playback.clone()));
    view.press(key('+'));
    view.press(key('='));
    view.press(key('-'));
    assert_eq!(playback.speed(), 2.0);
    view.press(key(' '));
    assert!(playback.is_paused() && view.is_paused() && !view.is_frozen());
    assert!(!view.is_used(), "nobody has begun to read");
}

#[test]
fn raw_events_are_shown_on_request() {
    let mut test = TestView::new(130, 30);
    test.push_text(0, "zero").push_text(1, "one");
    test.lacks("raw events ─").press(KeyCode::Char('e'));
    test.contains("raw events ─").contains("\"choice\":1,");
    test.resize(60, 30).contains("\"choice\":1,");
    test.press(KeyCode::Enter).lacks("\"choice\":1,");
    test.contains("raw events of this").contains("zero");
    test.press(KeyCode::Char('e')).lacks("raw events of this");
    test.resize(20, 5).screen();
}
