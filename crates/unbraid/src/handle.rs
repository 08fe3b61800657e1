//! The handles: what an application holds. Each shares the completion's guard; none owns an actor.

pub(crate) mod choice;
pub(crate) mod choices;
pub(crate) mod completions;
mod debug;
pub(crate) mod events;
pub(crate) mod json;
pub(crate) mod merge;
pub(crate) mod messages;
pub(crate) mod race;
pub(crate) mod text;
pub(crate) mod tool_call;

/// The inherent `next()` and the stream traits of a cursor that has `poll_item`, `done` and `Item`.
macro_rules! cursor {
    ($name:ident, $item:ty, $error:ty) => {
        impl $name {
            /// The next item; `None` once the stream is over.
            ///
            /// # Cancel safety
            ///
            /// Dropping the future before it is ready loses nothing: the next call gives the same item.
            pub async fn next(&mut self) -> Option<Result<$item, $error>> {
                std::future::poll_fn(|cx| self.poll_item(cx)).await
            }
        }

        impl futures::Stream for $name {
            type Item = Result<$item, $error>;

            fn poll_next(
                mut self: std::pin::Pin<&mut Self>,
                cx: &mut std::task::Context<'_>,
            ) -> std::task::Poll<Option<Self::Item>> {
                self.poll_item(cx)
            }
        }

        impl futures::stream::FusedStream for $name {
            fn is_terminated(&self) -> bool {
                self.is_done()
            }
        }
    };
}
pub(crate) use cursor;

/// Yields to the executor once in a while: a long replay must not starve other tasks.
#[derive(Debug, Clone, Default)]
pub(crate) struct Turns(u8);

impl Turns {
    /// True if it is another task's turn; the waker has been called then.
    pub(crate) fn over(&mut self, cx: &std::task::Context<'_>) -> bool {
        const ITEMS: u8 = 128;
        self.0 += 1;
        let over = self.0 > ITEMS;
        if over {
            self.0 = 0;
            cx.waker().wake_by_ref();
        }
        over
    }

    /// The task has waited anyway.
    pub(crate) fn rest(&mut self) {
        self.0 = 0;
    }
}
