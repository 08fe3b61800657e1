//! Cooperative scheduling of long replays.

use std::task::Context;

/// Makes a cursor yield to the executor once in a while: a long replay must not starve other tasks.
#[derive(Debug, Clone, Default)]
pub(super) struct CoopBudget(u8);

impl CoopBudget {
    /// Counts one item. Returns true if the cursor must yield; then it has woken its own task.
    pub(super) fn exhausted(&mut self, cx: &Context<'_>) -> bool {
        const ITEMS: u8 = 128;
        self.0 += 1;
        let exhausted = self.0 > ITEMS;
        if exhausted {
            self.0 = 0;
            cx.waker().wake_by_ref();
        }
        exhausted
    }

    /// Starts a new budget, because the task waits anyway.
    pub(super) fn reset(&mut self) {
        self.0 = 0;
    }
}
