//! What happens inside a terminal when the process panics: this test program runs itself in one.

use std::{env, thread};

use unbraid_testkit::terminal::Terminal;

use super::{Screen, View};

/// Runs one of the ignored tests below in a terminal of its own.
#[track_caller]
fn check(name: &str, told: &str) {
    let program = env::current_exe().unwrap();
    let name = format!("live::screen::tests::{name}");
    let args = [&*name, "--exact", "--ignored", "--nocapture"];
    let left = Terminal::run(program.to_str().unwrap(), args, (24, 80)).end();
    let (_, behind) = left
        .written
        .split_once("\u{1b}[?1049l")
        .unwrap_or_else(|| panic!("{}", left.contents));
    assert!(left.restored, "{}", left.contents);
    assert!(behind.contains(told), "{behind}");
    // The terminal is no longer raw: its lines end as lines do.
    assert!(behind.contains("\r\n"), "{behind:?}");
}

#[test]
fn a_panic_is_told_on_the_ordinary_screen() {
    check("panics_while_it_draws", "drawing is over");
}

#[test]
fn a_panic_on_another_thread_gives_the_terminal_back_too() {
    check("panics_beside_it", "beside it");
}

#[test]
#[ignore = "run by the tests above"]
fn panics_while_it_draws() {
    let mut screen = Screen::enter().unwrap();
    assert!(screen.keys.is_some());
    screen.draw(&mut View::new("a title", true)).unwrap();
    panic!("drawing is over");
}

#[test]
#[ignore = "run by the tests above"]
fn panics_beside_it() {
    let mut screen = Screen::enter().unwrap();
    let mut view = View::new("a title", true);
    screen.draw(&mut view).unwrap();
    let beside = thread::spawn(|| panic!("beside it"));
    assert!(beside.join().is_err());
    assert!(!super::is_open());
    screen.draw(&mut view).unwrap(); // draws nothing
}
