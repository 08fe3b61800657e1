//! Decides whether to poll a source again after a delivery although it just returned `Pending`.

/// Decides whether to poll a source again after a delivery although it just returned `Pending`.
///
/// Some sources have more by then, and what they have joins the next batch. For others the extra poll is wasted on every
/// event, so the heuristic stops trying after a few polls in a row that found nothing, and tries again now and then.
///
/// It pays for reads of random sizes (`unbraid-bench --quick`, delivery `random`, one thread): 380 to 410 ns a chunk,
/// without it 520 to 550 ns. Where each read is one event it costs 0.1 % more instructions.
#[derive(Debug, Default)]
pub(super) struct RepollHeuristic {
    repolled: bool,
    /// How many repolls in a row found nothing. It wraps around from time to time, and then the trials start again.
    futile: u8,
}

impl RepollHeuristic {
    const TRIALS: u8 = 4;

    pub(super) fn should_repoll(&mut self) -> bool {
        self.repolled = self.futile < Self::TRIALS;
        if !self.repolled {
            // Counting on after the trials is what starts them again: 252 deliveries later the counter is back at zero.
            self.futile = self.futile.wrapping_add(1);
        }
        self.repolled
    }

    /// The source returned something.
    pub(super) fn saw_item(&mut self) {
        if std::mem::take(&mut self.repolled) {
            self.futile = 0;
        }
    }

    /// The source returned `Pending` with nothing read before.
    pub(super) fn saw_pending(&mut self) {
        if std::mem::take(&mut self.repolled) {
            self.futile += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often a source is repolled in this many rounds, if a repoll finds something or not.
    fn repolls(rounds: usize, finds_more: bool) -> usize {
        let mut heuristic = RepollHeuristic::default();
        let mut repolls = 0;
        for _ in 0..rounds {
            heuristic.saw_item();
            if heuristic.should_repoll() {
                repolls += 1;
                if finds_more {
                    heuristic.saw_item();
                } else {
                    heuristic.saw_pending();
                }
            }
        }
        repolls
    }

    #[test]
    fn a_source_is_repolled_as_long_as_that_finds_something() {
        assert_eq!(repolls(1000, true), 1000);
    }

    #[test]
    fn a_source_that_never_has_more_is_repolled_now_and_then() {
        assert_eq!(repolls(4, false), 4);
        assert_eq!(repolls(250, false), 4);
        assert_eq!(repolls(2560, false), 40);
    }

    #[test]
    fn one_successful_repoll_outweighs_the_futile_ones_before_it() {
        let mut heuristic = RepollHeuristic::default();
        for has_more in [false, false, false, true].repeat(10) {
            heuristic.saw_item();
            assert!(heuristic.should_repoll());
            if has_more {
                heuristic.saw_item();
            } else {
                heuristic.saw_pending();
            }
        }
    }
}
