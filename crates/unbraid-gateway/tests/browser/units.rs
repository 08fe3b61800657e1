//! The parts of the page that need no browser.

use std::{path::Path, process::Command};

use unbraid_testkit::fixture::workspace_root;

use crate::driver::print_skipped;

#[test]
fn json_and_events_are_read_at_every_cut() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/page/index.html");
    let script = workspace_root().join("tests/browser/units.mjs");
    match Command::new("node").arg(script).arg(page).output() {
        Ok(output) => assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        ),
        Err(error) => print_skipped(&format!("Node.js cannot be run: {error}")),
    }
}
