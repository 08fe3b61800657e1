//! Events of several data lines: one value together (S11), or several that lack the blank lines between them (S10).
//!
//! Which of both they are shows at the first byte with which the lines cannot be one JSON value. Then what came before that
//! line is given, and each value of the rest as its last line ends. Only the bytes decide, never how they were read.

use super::{DONE, FrameError, Held, Sse, Step};
use crate::frame::{
    buffer::append,
    value::{Shape, Value},
};

impl Sse {
    /// A data line that is not the first one of its event.
    pub(super) fn further_data<'i>(
        &mut self,
        value: &'i [u8],
        held: &mut Held<'i>,
    ) -> Result<Step, FrameError> {
        // An event named error is read as a whole (S15, S32), and strict mode knows no parts.
        let whole = self.strict || held.name.unwrap_or(&self.name) == b"error";
        if !self.has_data && held.data.is_none() {
            return self.first_of_part(value, whole, held);
        }
        if !whole && !value.trim_ascii().is_empty() {
            self.follow(held);
            if self.value.shape() != Shape::Open || value.trim_ascii() == DONE {
                return Ok(self.before());
            }
            self.value.feed(b"\n");
            self.value.feed(value);
            if self.value.shape() == (Shape::Wrong { after_value: false }) {
                return Ok(self.before());
            }
        }
        self.join_data(value, held)?;
        let over = match self.value.shape() {
            // So far there were only blank lines behind the first one: the value is still that of an earlier event.
            _ if !self.followed => false,
            Shape::Open => false,
            Shape::Complete => self.apart,
            Shape::Wrong { .. } => true,
        };
        if over && !whole {
            self.apart = true;
            return Ok(Step::Part);
        }
        Ok(Step::More)
    }

    /// The first line of a part: where it is one value, or cannot become one, it is all of it.
    fn first_of_part<'i>(
        &mut self,
        value: &'i [u8],
        whole: bool,
        held: &mut Held<'i>,
    ) -> Result<Step, FrameError> {
        if !whole && value.trim_ascii().is_empty() {
            return Ok(Step::More); // S12
        }
        self.check(value.len())?;
        held.data = Some(value);
        if whole {
            return Ok(Step::More);
        }
        self.follow(held);
        Ok(match self.value.shape() {
            Shape::Open => Step::More,
            Shape::Complete | Shape::Wrong { .. } => Step::Part,
        })
    }

    /// Reads the data so far as JSON, unless that was done.
    fn follow(&mut self, held: &Held<'_>) {
        if !std::mem::replace(&mut self.followed, true) {
            let mut value = Value::new();
            value.feed(held.data.unwrap_or_else(|| self.data()));
            self.value = value;
        }
    }

    fn before(&mut self) -> Step {
        self.apart = true;
        Step::Before
    }

    fn join_data<'i>(&mut self, value: &'i [u8], held: &mut Held<'i>) -> Result<(), FrameError> {
        if let Some(first) = held.data.take() {
            self.set_data(first);
        }
        self.check(self.data().len() + 1 + value.len())?;
        let limit = self.limit + self.skip;
        append(&mut self.data, b"\n", limit);
        append(&mut self.data, value, limit);
        Ok(())
    }
}
