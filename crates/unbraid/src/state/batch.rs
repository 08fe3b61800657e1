//! What passes from the reader to a choice: not a queue of messages but one batch that grows until it is applied.
//!
//! What a batch may hold is counted by the router against the byte limits before it comes here.

use std::fmt;

use unbraid_core::{
    ChoiceEnd, ChoiceIndex, CompletionKind, Fragment, Position, Transcript, Update,
    choice::ChoiceMachine,
    piece::{DeltaKind, TextDelta},
};

/// Text that makes a machine of the tests panic, as a bug would.
#[cfg(test)]
pub(crate) const PANIC: &str = "panic on purpose";

const ASSISTANT: &str = "assistant";

/// Work for one choice's machine, in order.
#[derive(Default)]
pub(crate) struct Batch {
    text: String,
    steps: Vec<Step>,
    /// Whether any step is more than a piece of text.
    mixed: bool,
}

#[derive(Debug)]
enum Step {
    /// A piece of text, the bulk of every stream: it ends here in the batch's text.
    Piece {
        place: Position,
        lane: DeltaKind,
        shape: CompletionKind,
        /// Whether it says again that an assistant writes, which is the one role that servers repeat.
        assistant: bool,
        end: usize,
    },
    Update {
        place: Position,
        update: Box<Update<'static>>,
    },
    Late {
        place: Position,
        update: Box<Update<'static>>,
    },
    End {
        place: Position,
        end: ChoiceEnd,
    },
    Fail {
        place: Position,
        end: ChoiceEnd,
    },
}

/// Its text is what a model wrote.
impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch")
            .field("steps", &self.steps.len())
            .finish_non_exhaustive()
    }
}

impl Batch {
    pub(crate) fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Whether it has grown so large that it must be applied before more is added.
    pub(crate) fn is_large(&self) -> bool {
        const LARGE: usize = 16 * 1024; // about 8 MiB, if none of it is plain text
        self.steps.len() >= LARGE
    }

    /// Whether it holds pieces of text and nothing else.
    pub(crate) fn is_text(&self) -> bool {
        !self.mixed
    }

    /// The one text that all its pieces go on with, and the role they all name; `None` if there is more to it.
    pub(crate) fn only(&self) -> Option<(DeltaKind, Option<&'static str>)> {
        let of = |step: &Step| match step {
            Step::Piece {
                lane, assistant, ..
            } => Some((*lane, assistant.then_some(ASSISTANT))),
            Step::Update { .. } | Step::Late { .. } | Step::End { .. } | Step::Fail { .. } => None,
        };
        let (first, rest) = self.steps.split_first()?;
        let only = of(first);
        only.filter(|_| rest.iter().all(|step| of(step) == only))
    }

    fn push(&mut self, step: Step) {
        self.mixed = true;
        self.steps.push(step);
    }

    pub(crate) fn update(&mut self, update: &Update<'_>, place: Position) {
        let choice = update.choice.unwrap_or(ChoiceIndex(0));
        let texts = [
            (DeltaKind::Content, &update.content),
            (DeltaKind::Reasoning, &update.reasoning),
        ];
        for (lane, fragment) in texts {
            if let Some(text) = plain(update, fragment.as_ref()) {
                let piece = TextDelta {
                    event_index: update.event_index,
                    choice,
                    kind: update.kind,
                    role: None,
                    text_kind: lane,
                    text,
                };
                return self.piece(&piece, place);
            }
        }
        self.push(Step::Update {
            place,
            update: kept(update),
        });
    }

    pub(crate) fn piece(&mut self, piece: &TextDelta<'_>, place: Position) {
        if piece.role.is_some_and(|role| role != ASSISTANT) {
            let update = Box::new(piece.to_update().into_owned());
            return self.push(Step::Update { place, update });
        }
        self.text.push_str(piece.text);
        self.steps.push(Step::Piece {
            place,
            lane: piece.text_kind,
            shape: piece.kind,
            assistant: piece.role.is_some(),
            end: self.text.len(),
        });
    }

    pub(crate) fn late(&mut self, update: &Update<'_>, place: Position) {
        self.push(Step::Late {
            place,
            update: kept(update),
        });
    }

    pub(crate) fn end(&mut self, end: ChoiceEnd, place: Position) {
        self.push(Step::End { place, end });
    }

    pub(crate) fn fail(&mut self, end: ChoiceEnd, place: Position) {
        self.push(Step::Fail { place, end });
    }

    /// Gives the machine everything, and keeps the room for what comes next.
    pub(crate) fn apply(&mut self, machine: &mut ChoiceMachine, log: &mut Transcript) {
        #[cfg(test)]
        assert!(!self.text.contains(PANIC), "{PANIC}");
        let mut start = 0;
        for step in self.steps.drain(..) {
            match step {
                Step::Piece {
                    place,
                    lane,
                    shape,
                    assistant,
                    end,
                } => {
                    let piece = TextDelta {
                        event_index: place.event,
                        choice: log.index(),
                        kind: shape,
                        role: assistant.then_some(ASSISTANT),
                        text_kind: lane,
                        text: self.text.get(start..end).unwrap_or(""),
                    };
                    machine.apply_text(&piece, place, log);
                    start = end;
                }
                Step::Update { place, update } => machine.apply(&update, place, log),
                Step::Late { place, update } => machine.apply_late(&update, place, log),
                Step::End { place, end } => machine.finish(end, place, log),
                Step::Fail { place, end } => machine.finish_with_error(end, place, log),
            }
        }
        self.text.clear();
        self.mixed = false;
    }

    /// Where the batch's last step stands.
    pub(crate) fn last_place(&self) -> Option<Position> {
        Some(match self.steps.last()? {
            Step::Piece { place, .. } | Step::Update { place, .. } => *place,
            Step::Late { place, .. } | Step::End { place, .. } | Step::Fail { place, .. } => *place,
        })
    }

    /// Adds what another holds, and leaves that one empty.
    pub(crate) fn append(&mut self, more: &mut Self) {
        if self.is_empty() {
            return std::mem::swap(self, more);
        }
        let offset = self.text.len();
        self.text.push_str(&more.text);
        self.steps
            .extend(more.steps.drain(..).map(|step| match step {
                Step::Piece {
                    place,
                    lane,
                    shape,
                    assistant,
                    end,
                } => Step::Piece {
                    place,
                    lane,
                    shape,
                    assistant,
                    end: end + offset,
                },
                other @ (Step::Update { .. }
                | Step::Late { .. }
                | Step::End { .. }
                | Step::Fail { .. }) => other,
            }));
        more.text.clear();
        self.mixed |= std::mem::take(&mut more.mixed);
    }
}

/// The update as a batch keeps it, without the envelope: that is the stream's, and no machine reads it.
fn kept(update: &Update<'_>) -> Box<Update<'static>> {
    let choice = Update {
        id: None,
        model: None,
        warnings: Vec::new(),
        ..update.clone()
    };
    Box::new(choice.into_owned())
}

/// The text, if the update brings nothing else that a machine looks at.
fn plain<'u>(update: &'u Update<'_>, fragment: Option<&'u Fragment<'_>>) -> Option<&'u str> {
    let fragment =
        fragment.filter(|f| f.low.is_none() && f.high.is_none() && !f.text.is_empty())?;
    let texts = [&update.content, &update.reasoning, &update.refusal];
    let alone = texts.iter().filter(|text| text.is_some()).count() == 1
        && update.role.is_none()
        && update.function_name.is_none()
        && update.function_arguments.is_none()
        && update.tool_calls.is_empty()
        && update.logprobs.is_none()
        && update.finish_reason.is_none()
        && update.metadata.is_empty()
        && !update.is_full_message;
    alone.then_some(&*fragment.text)
}
