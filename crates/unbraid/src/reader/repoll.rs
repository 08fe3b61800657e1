//! Whether a source that has just said that it has nothing is asked again behind a delivery.

/// Whether a source that has just said that it has nothing is asked again behind a delivery. Some have more by then, and it
/// goes with the next batch; for others that is one question too many for each event.
#[derive(Debug, Default)]
pub(super) struct Again {
    asked: bool,
    /// How often in a row it had nothing. From time to time this starts anew.
    futile: u8,
}

impl Again {
    const TRIES: u8 = 4;

    pub(super) fn pays(&mut self) -> bool {
        self.asked = self.futile < Self::TRIES;
        if !self.asked {
            self.futile = self.futile.wrapping_add(1);
        }
        self.asked
    }

    pub(super) fn read(&mut self) {
        if std::mem::take(&mut self.asked) {
            self.futile = 0;
        }
    }

    pub(super) fn had_nothing(&mut self) {
        if std::mem::take(&mut self.asked) {
            self.futile += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often a source is asked again in so many turns, where it then has something or not.
    fn asked(turns: usize, has: bool) -> usize {
        let mut again = Again::default();
        let mut asked = 0;
        for _ in 0..turns {
            again.read();
            if again.pays() {
                asked += 1;
                if has {
                    again.read();
                } else {
                    again.had_nothing();
                }
            }
        }
        asked
    }

    #[test]
    fn a_source_is_asked_again_as_long_as_that_brings_something() {
        assert_eq!(asked(1000, true), 1000);
    }

    #[test]
    fn a_source_that_never_has_more_is_asked_now_and_then() {
        assert_eq!(asked(4, false), 4);
        assert_eq!(asked(250, false), 4);
        assert_eq!(asked(2560, false), 40);
    }
}
