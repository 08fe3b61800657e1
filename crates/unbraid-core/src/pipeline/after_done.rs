//! Reads the bytes after `[DONE]` up to a limit, if the options request the usage in them, and then closes the stream (U13).

use super::Pipeline;
use crate::{
    Update,
    limits::{DELTA_COST, MAX_BYTES_AFTER_DONE},
    route::ChoiceSink,
};

impl<S: ChoiceSink> Pipeline<S> {
    /// Returns how many bytes were read after `[DONE]`. An update counts with the memory that it costs.
    #[must_use]
    pub fn bytes_after_done(&self) -> usize {
        self.after_done
    }

    /// Closes a stream that is kept open for usage after `[DONE]`, because the caller has waited long enough.
    pub fn end_after_done(&mut self) {
        if self.router.is_after_done() {
            self.router.handle_idle(&mut self.sink);
        }
    }

    #[cold]
    pub(super) fn feed_after_done(&mut self, bytes: &[u8]) {
        let mut input = bytes;
        if self.after_done == 0 && !self.begin_after_done(&mut input) {
            return self.end_after_done();
        }
        let remaining = MAX_BYTES_AFTER_DONE.saturating_sub(self.after_done);
        input = input.get(..remaining).unwrap_or(input);
        self.after_done += input.len();
        let Self {
            update_reader,
            router,
            sink,
            ..
        } = self;
        while router.is_after_done() {
            // Dynamic dispatch, because only the loop of `feed_portion` is worth a copy of the decoder.
            let mut update = |update: &Update<'_>| router.update(update, sink);
            let Some(event) = update_reader.next(&mut input, &mut update) else {
                break;
            };
            if let Err(error) = event {
                router.abort(error, sink); // the framer has ended
            }
        }
        if self.after_done >= MAX_BYTES_AFTER_DONE {
            self.end_after_done();
        }
    }

    /// Starts the count at the same byte, however the stream is split into reads: after the line end of `[DONE]`, or before
    /// the line that ended its event if that line has to be read again (S10).
    ///
    /// Returns false if that line alone exceeds the limit.
    fn begin_after_done(&mut self, input: &mut &[u8]) -> bool {
        let framer = &mut self.update_reader.framer;
        let Some(line) = framer.line_left() else {
            framer.skip_lf(input);
            return true;
        };
        self.after_done = line.consumed;
        line.length < MAX_BYTES_AFTER_DONE
    }

    #[cold]
    pub(super) fn update_after_done(&mut self, update: &Update<'_>) {
        let cost = usize::try_from(update.cost() + DELTA_COST).unwrap_or(usize::MAX);
        self.after_done = self.after_done.saturating_add(cost);
        self.router.update(update, &mut self.sink);
        if self.after_done >= MAX_BYTES_AFTER_DONE {
            self.end_after_done();
        }
    }
}

#[cfg(test)]
mod cuts;

#[cfg(test)]
mod tests {
    use unbraid_testkit::cut::{every_cut_in_two, fixed};

    use crate::{
        ChoiceEnd, ChoiceIndex, Config, Demux, StreamError, TransportError, Update,
        limits::MAX_BYTES_AFTER_DONE,
    };

    const ANSWER: &str = "data: {\"id\":\"a\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"}}]}\n\n\
        data: {\"id\":\"a\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    const USAGE: &str =
        "data: {\"id\":\"b\",\"choices\":[],\"usage\":{\"completion_tokens\":7}}\n\n";

    fn demux() -> Demux {
        let mut demux = Demux::new(Config {
            usage_after_done: true,
            ..Config::default()
        });
        demux.feed(ANSWER.as_bytes());
        demux
    }

    fn tokens(demux: &Demux) -> Option<u64> {
        demux.usage().completion_tokens
    }

    /// The events that were not taken yet.
    fn remaining_events(demux: &mut Demux) -> Vec<String> {
        let mut lines = Vec::new();
        while let Some(event) = demux.next_event() {
            lines.push(event.to_string());
        }
        lines
    }

    #[test]
    fn u13_usage_after_done_counts_if_it_is_requested() {
        let mut demux = demux();
        let end = demux.choice(ChoiceIndex(0)).and_then(|choice| choice.end());
        assert!(
            matches!(end, Some(ChoiceEnd::Finished(_))),
            "at [DONE] already"
        );
        assert!(demux.closed().is_none());
        demux.feed(USAGE.as_bytes());
        demux.finish();
        assert_eq!(tokens(&demux), Some(7));
        assert!(matches!(demux.closed(), Some(Ok(()))));
        let lines = remaining_events(&mut demux);
        assert!(lines.last().is_some_and(|line| line.contains("\"usage\"")));

        let mut without = Demux::new(Config::default());
        without.feed([ANSWER, USAGE].concat().as_bytes());
        assert_eq!(tokens(&without), None);
    }

    #[test]
    fn s26_only_usage_is_read_after_done() {
        let mut demux = demux();
        remaining_events(&mut demux);
        demux.feed(
            b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\" extra\"},\"usage\":{\"completion_tokens\":3}},\
            {\"index\":1,\"delta\":{\"content\":\"new\"},\"usage\":{\"completion_tokens\":4}}]}\n\n\
            data: {\"error\":{\"message\":\"boom\"}}\n\ndata: {\"no JSON\n\ndata: [DONE]\n\n",
        );
        demux.feed(ANSWER.replace("\"a\"", "\"other\"").as_bytes());
        assert!(demux.closed().is_none());
        demux.handle_idle();
        assert!(matches!(demux.closed(), Some(Ok(()))));
        assert_eq!(tokens(&demux), Some(3), "of the choice that there is");
        assert_eq!(demux.choices().count(), 1);
        assert_eq!(
            demux
                .choice(ChoiceIndex(0))
                .map(|c| c.message().content)
                .as_deref(),
            Some("Hi")
        );
        assert!(demux.warnings().is_empty());
        assert_eq!(demux.metadata().id.as_deref(), Some("a"));
        assert_eq!(remaining_events(&mut demux).len(), 1, "the usage");
    }

    #[test]
    fn u13_an_error_after_done_does_not_end_the_stream_with_an_error() {
        for error in [
            StreamError::Transport(TransportError::new(9, "reset").into()),
            StreamError::Cancelled,
        ] {
            let mut demux = demux();
            demux.feed(USAGE.as_bytes());
            demux.abort(error);
            assert!(matches!(demux.closed(), Some(Ok(()))));
            assert_eq!(tokens(&demux), Some(7));
        }
    }

    #[test]
    fn u13_a_last_event_without_its_blank_line_counts() {
        let mut demux = demux();
        demux.feed(USAGE.trim_end().as_bytes());
        demux.finish();
        assert_eq!(tokens(&demux), Some(7));
    }

    #[test]
    fn u13_usage_counts_up_to_the_limit() {
        let fill = MAX_BYTES_AFTER_DONE - USAGE.len();
        for (more, expected) in [(0, Some(7)), (1, None)] {
            let comment = format!(":{}\n\n", " ".repeat(fill + more - 3));
            let after = [comment.as_str(), USAGE].concat();
            let mut whole = demux();
            whole.feed(after.as_bytes());
            assert_eq!(tokens(&whole), expected);
            assert!(whole.closed().is_some(), "as the bound is reached");
            let mut pieces = demux();
            for piece in fixed(after.as_bytes(), 1000) {
                pieces.feed(piece);
            }
            assert_eq!(tokens(&pieces), expected);
            assert!(pieces.closed().is_some());
        }
    }

    #[test]
    fn u13_updates_are_limited_like_bytes() {
        let mut demux = demux();
        let nothing = Update {
            last_of_event: true,
            ..Update::default()
        };
        let mut count = 0;
        while demux.closed().is_none() {
            demux.feed_update(&nothing);
            count += 1;
        }
        assert_eq!(count, 1024);
    }

    #[test]
    fn u13_every_split_into_reads_gives_the_same_events() {
        let stream = [ANSWER, USAGE, ANSWER].concat();
        let events = |pieces: &[&[u8]]| {
            let mut demux = Demux::new(Config {
                usage_after_done: true,
                ..Config::default()
            });
            for piece in pieces {
                demux.feed(piece);
            }
            demux.finish();
            remaining_events(&mut demux)
        };
        let expected = events(&[stream.as_bytes()]);
        assert!(
            expected
                .last()
                .is_some_and(|line| line.contains("\"completion_tokens\":7"))
        );
        for (head, tail) in every_cut_in_two(stream.as_bytes()) {
            assert_eq!(events(&[head, tail]), expected, "cut at {}", head.len());
        }
    }
}
