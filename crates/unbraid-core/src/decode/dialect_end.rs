//! What a dialect reports at its end mark, before an error, and where the body ends or was cut.

use super::{Decoder, DialectState, Emitter};
use crate::{
    ChoiceIndex, Update,
    dialect::{DialectReader, Output},
    text_delta::{UpdateSink, Updates},
};

impl Decoder {
    /// The stream's end mark, or an error, follows.
    pub(super) fn end_in_dialect(&mut self, is_error: bool, emitter: &mut Emitter<'_, '_>) {
        if let DialectState::Other { reader, .. } = &mut self.dialect {
            let mut output = Output::default();
            reader.finish(!is_error, &mut output);
            self.emit_output(output, emitter);
            if is_error {
                self.split_event(emitter);
            }
        }
    }

    /// The end of the stream cut an event with this data.
    pub(super) fn cut_in_dialect(&mut self, data: &str) {
        let last_line = data.trim_end().rsplit('\n').next().unwrap_or_default();
        let last_line = last_line.trim_start();
        if last_line.is_empty() || !"[DONE]".starts_with(last_line) {
            self.cut_before_data();
        }
    }

    /// Notes an event that the end of the body cut before its data: what is held back may depend on it.
    #[doc(hidden)]
    pub fn cut_before_data(&mut self) {
        if let DialectState::Other { reader, .. } = &mut self.dialect {
            reader.cut();
        }
    }

    /// Ends the event of what was held back: it had arrived before the error, which must not reach a choice that had finished
    /// (X4).
    fn split_event(&mut self, emitter: &mut Emitter<'_, '_>) {
        // The dialect may have held back nothing, and an event without an update must not be counted.
        if emitter.flush() {
            self.events += 1;
        }
    }

    /// Notes an event that the end of the body cut, and that the caller drops: what is held back may depend on it.
    #[doc(hidden)]
    pub fn discard_cut(&mut self, data: &[u8]) {
        self.cut_in_dialect(&String::from_utf8_lossy(data));
    }

    /// Emits what the dialect has held back until the end of the body, or of a connection that was lost.
    #[doc(hidden)]
    pub fn finish_updates(&mut self, is_complete: bool, sink: &mut dyn FnMut(&Update<'_>)) {
        self.finish(is_complete, &mut Updates(sink));
    }

    /// The end of the body, or of a connection that was lost: emits what the dialect has held back, as one more event.
    pub(crate) fn finish(&mut self, is_complete: bool, sink: &mut dyn UpdateSink) -> bool {
        let report = |reader: &mut dyn DialectReader, output: &mut Output<'_>| {
            reader.finish(is_complete, output);
        };
        let has_update = self.emit_closing(self.events, sink, report);
        self.events += u64::from(has_update);
        has_update
    }

    /// The caller cancels a choice: emits what the dialect has held back of it, as a part of the last event. The other choices have
    /// the same events as without the cancel.
    pub(crate) fn flush(&mut self, choice: ChoiceIndex, sink: &mut dyn UpdateSink) {
        let last = self.events.saturating_sub(1);
        self.emit_closing(last, sink, |reader, output| reader.flush(choice.0, output));
    }

    /// Whether the dialect may hold something back.
    pub(crate) fn may_hold_back(&self) -> bool {
        matches!(self.dialect, DialectState::Other { .. })
    }

    /// Emits what a dialect reports without a value; false if that is nothing.
    fn emit_closing(
        &mut self,
        event_index: u64,
        sink: &mut dyn UpdateSink,
        report: impl FnOnce(&mut dyn DialectReader, &mut Output<'_>),
    ) -> bool {
        let DialectState::Other { reader, .. } = &mut self.dialect else {
            return false;
        };
        let mut output = Output::default();
        report(&mut **reader, &mut output);
        let mut emitter = Emitter::new(event_index, sink);
        self.emit_output(output, &mut emitter);
        let has_update = emitter.held.is_some();
        if has_update {
            emitter.finish();
        }
        has_update
    }
}
