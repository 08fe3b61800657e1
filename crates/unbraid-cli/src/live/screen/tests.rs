//! Panics while the view is open. The test program runs itself in a pseudo-terminal.

use std::{env, thread};

use unbraid_testkit::terminal::Terminal;

use super::{Screen, View};
use crate::palette::Palette;

/// Runs one of the ignored tests below in a pseudo-terminal, and checks the message after the view.
#[track_caller]
fn check(name: &str, message: &str) {
    let program = env::current_exe().unwrap();
    let name = format!("live::screen::tests::{name}");
    let args = [&*name, "--exact", "--ignored", "--nocapture"];
    let left = Terminal::run(program.to_str().unwrap(), args, (24, 80)).end();
    let (_, after) = left
        .written
        .split_once("\u{1b}[?1049l")
        .unwrap_or_else(|| panic!("{}", left.contents));
    assert!(left.restored, "{}", left.contents);
    assert!(after.contains(message), "{after}");
    // The terminal is no longer in raw mode: it expands a newline to CR and LF.
    assert!(after.contains("\r\n"), "{after:?}");
}

#[test]
fn a_panic_is_reported_on_the_normal_screen() {
    check("panics_while_drawing", "while drawing");
}

#[test]
fn a_panic_on_another_thread_restores_the_terminal_too() {
    check("panics_on_another_thread", "on another thread");
}

#[test]
#[ignore = "run by the tests above"]
fn panics_while_drawing() {
    let mut screen = Screen::enter().unwrap();
    assert!(screen.keys.is_some());
    screen
        .draw(&mut View::new("a title", true, Palette::None))
        .unwrap();
    panic!("while drawing");
}

#[test]
#[ignore = "run by the tests above"]
fn panics_on_another_thread() {
    let mut screen = Screen::enter().unwrap();
    let mut view = View::new("a title", true, Palette::None);
    screen.draw(&mut view).unwrap();
    let panicking = thread::spawn(|| panic!("on another thread"));
    assert!(panicking.join().is_err());
    assert!(!super::is_open());
    screen.draw(&mut view).unwrap(); // draws nothing
}
