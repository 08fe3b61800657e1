//! What happens when a deadline of a generation has passed.

use tokio::time::Instant;
use unbraid_core::{StreamError, TimedOut, Timeout};
use unbraid_log::End;

use super::{Generation, Tick, part::Part, tracker::Role};
use crate::limits::IDLE_END;

impl Generation {
    pub(super) async fn handle_tick(&mut self, tick: Tick) {
        match tick {
            Tick::Idle => self.end_finished(),
            Tick::TimedOut => self.time_out(),
            Tick::Orphaned => {
                self.cancel_all();
            }
            Tick::Renew => {
                if let Err(error) = self.keeper.renew().await
                    && !error.is_temporary()
                {
                    self.log_failed(&error);
                }
            }
            Tick::Linger => {}
        }
    }

    /// Ends the choices that have a finish reason in the bodies that are silent.
    fn end_finished(&mut self) {
        let now = Instant::now();
        let is_silent = |since: Instant| now.duration_since(since) >= IDLE_END;
        for part in &mut self.parts {
            if part.finished_since().is_some_and(is_silent) {
                part.tracker
                    .handle_idle(&self.identity, &mut self.keeper.events);
            }
        }
        self.close_if_cancelled();
    }

    /// Ends the bodies that are silent for too long. The other choices of a fan-out continue.
    fn time_out(&mut self) {
        let now = Instant::now();
        let idle = self.clock.idle_timeout();
        let is_silent = |since: Instant| now.duration_since(since) >= idle;
        let error = StreamError::TimedOut(TimedOut::new(Timeout::Idle, idle));
        let silent = |part: &&mut Part| part.silent_since().is_some_and(is_silent);
        for part in self.parts.iter_mut().filter(silent) {
            if !matches!(part.tracker.role, Role::Single(_)) {
                return self.abort(End::TimedOut, &error);
            }
            part.fail(
                Some(error.clone()),
                &mut self.identity,
                &mut self.keeper.events,
            );
        }
        self.close_if_cancelled();
    }
}
