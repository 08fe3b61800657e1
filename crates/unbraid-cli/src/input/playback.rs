//! The clock of a replay, which the keys of the live view can stop and speed up.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::watch,
    time::{self, Instant},
};

/// A clock that runs at a changeable speed. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Playback(Arc<watch::Sender<State>>);

#[derive(Debug, Clone, Copy)]
struct State {
    speed: f64,
    paused: bool,
    /// The clock's time at `since`.
    time: Duration,
    since: Instant,
}

/// One key press doubles or halves the speed within these bounds.
const SPEEDS: std::ops::RangeInclusive<f64> = 1.0 / 64.0..=1024.0 * 1024.0;

impl State {
    fn now(&self) -> Duration {
        if self.paused {
            return self.time;
        }
        let elapsed = self.since.elapsed().as_secs_f64() * self.speed;
        let elapsed = Duration::try_from_secs_f64(elapsed).unwrap_or(Duration::MAX);
        self.time.saturating_add(elapsed)
    }

    /// How long it takes until the clock shows this time, or `None` while it stands still.
    fn until(&self, time: Duration) -> Option<Duration> {
        let rest = time.saturating_sub(self.now());
        if rest.is_zero() {
            return Some(rest);
        }
        let rest = Duration::try_from_secs_f64(rest.as_secs_f64() / self.speed);
        (!self.paused).then(|| rest.unwrap_or(Duration::MAX))
    }
}

impl Playback {
    /// Starts a clock at zero.
    pub(crate) fn new(speed: f64) -> Self {
        let state = State {
            speed,
            paused: false,
            time: Duration::ZERO,
            since: Instant::now(),
        };
        Self(Arc::new(watch::Sender::new(state)))
    }

    pub(crate) fn now(&self) -> Duration {
        self.0.borrow().now()
    }

    pub(crate) fn speed(&self) -> f64 {
        self.0.borrow().speed
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.0.borrow().paused
    }

    /// Stops the clock, or lets it go on.
    pub(crate) fn toggle_pause(&self) {
        self.change(|state| state.paused = !state.paused);
    }

    /// Multiplies the speed.
    pub(crate) fn multiply_speed(&self, factor: f64) {
        self.change(|state| {
            let speed = state.speed * factor;
            if SPEEDS.contains(&speed) {
                state.speed = speed;
            }
        });
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        self.0.send_modify(|state| {
            state.time = state.now();
            state.since = Instant::now();
            change(state);
        });
    }

    /// Waits until the clock shows this time, also if its speed changes meanwhile.
    pub(crate) async fn sleep_until(&self, time: Duration) {
        let mut changes = self.0.subscribe();
        loop {
            let rest = changes.borrow_and_update().until(time);
            let sleep = async {
                match rest {
                    Some(rest) => time::sleep(rest).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = sleep => return,
                // It cannot fail: `self` keeps the sender.
                _ = changes.changed() => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn the_speed_changes_while_something_waits() {
        let playback = Playback::new(1.0);
        let start = Instant::now();
        let waiting = playback.clone();
        let waiting = tokio::spawn(async move { waiting.sleep_until(10 * SECOND).await });
        time::sleep(4 * SECOND).await;
        playback.multiply_speed(2.0);
        waiting.await.unwrap();
        assert_eq!(
            start.elapsed().as_secs(),
            7,
            "4 s, and 6 s at twice the speed"
        );
        assert_eq!(playback.now().as_secs(), 10);
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_stops_the_clock() {
        let playback = Playback::new(2.0);
        let start = Instant::now();
        let waiting = playback.clone();
        let waiting = tokio::spawn(async move { waiting.sleep_until(4 * SECOND).await });
        time::sleep(SECOND).await;
        playback.toggle_pause();
        time::sleep(100 * SECOND).await;
        assert!(playback.is_paused() && !waiting.is_finished());
        assert_eq!(playback.now(), 2 * SECOND);
        playback.toggle_pause();
        waiting.await.unwrap();
        assert_eq!(start.elapsed().as_secs(), 102);
    }

    #[tokio::test(start_paused = true)]
    async fn the_speed_is_bounded() {
        let playback = Playback::new(1.0);
        for _ in 0..100 {
            playback.multiply_speed(0.5);
        }
        assert_eq!(playback.speed(), 1.0 / 64.0);
        for _ in 0..100 {
            playback.multiply_speed(2.0);
        }
        assert_eq!(playback.speed(), 1024.0 * 1024.0);
    }
}
