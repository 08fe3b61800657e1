//! A timer that costs little where its time moves with each event.

use std::{
    pin::Pin,
    task::{Context, Poll, Waker},
};

use tokio::time::{Instant, Sleep, sleep_until};

/// A timer that is created once, and polled only after its time.
#[derive(Default)]
pub(crate) struct Timer {
    sleep: Option<Pin<Box<Sleep>>>,
    /// When it fires, and which task it wakes.
    armed: Option<(Instant, Waker)>,
}

impl Timer {
    /// Waits until a time, which may be another one at each call. The task is woken then, or earlier.
    pub(crate) fn poll_until(
        &mut self,
        cx: &mut Context<'_>,
        until: Instant,
        now: Instant,
    ) -> Poll<()> {
        if until <= now {
            return Poll::Ready(());
        }
        // A timer that fires too early is set again. Setting it for each event would cost more than that.
        if let Some((at, task)) = &self.armed
            && (now < *at && *at <= until)
            && task.will_wake(cx.waker())
        {
            return Poll::Pending;
        }
        let sleep = self
            .sleep
            .get_or_insert_with(|| Box::pin(sleep_until(until)));
        if sleep.deadline() > until || sleep.deadline() <= now {
            sleep.as_mut().reset(until);
        }
        // Without a budget: a poll that is refused would arm nothing.
        let polled = Pin::new(&mut tokio::task::unconstrained(sleep.as_mut())).poll(cx);
        self.armed = Some((sleep.deadline(), cx.waker().clone()));
        polled
    }
}

#[cfg(test)]
mod tests {
    use std::{future::poll_fn, time::Duration};

    use futures::FutureExt;
    use tokio::time::sleep;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_timer_fires_at_the_last_time_that_it_was_given() {
        let secs = Duration::from_secs;
        let mut timer = Timer::default();
        let started = Instant::now();
        let mut events = 0;
        let mut next_event = Box::pin(sleep(secs(3)));
        // Each event moves the time, as a read moves the end of a silence.
        let mut last = started;
        poll_fn(|cx| {
            while events < 4 && next_event.poll_unpin(cx).is_ready() {
                events += 1;
                last = Instant::now();
                next_event.as_mut().reset(last + secs(3));
            }
            loop {
                let now = Instant::now();
                std::task::ready!(timer.poll_until(cx, last + secs(5), now));
                if last + secs(5) <= Instant::now() {
                    return Poll::Ready(());
                }
            }
        })
        .await;
        assert_eq!(events, 4);
        assert_eq!(started.elapsed().as_secs(), 4 * 3 + 5);
        // An earlier time counts as well.
        let now = Instant::now();
        let far = poll_fn(|cx| timer.poll_until(cx, now + secs(100), Instant::now()));
        assert_eq!(far.now_or_never(), None);
        poll_fn(|cx| timer.poll_until(cx, now + secs(1), Instant::now())).await;
        assert_eq!(now.elapsed().as_secs(), 1);
    }
}
