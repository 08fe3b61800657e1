//! The handles: what an application holds. All handles of a completion share one guard; none owns an actor.

// First, because rustdoc lists the methods of a type in the order of the modules, and those that create one come first.
pub(crate) mod completions;

mod aggregate;
pub(crate) mod choice;
pub(crate) mod choices;
mod coop_budget;
mod debug;
pub(crate) mod events;
pub(crate) mod json;
pub(crate) mod merge;
pub(crate) mod messages;
pub(crate) mod outcomes;
pub(crate) mod race;
mod ready;
mod report;
pub(crate) mod text;
pub(crate) mod tool_call;
pub(crate) mod weak;

/// Implements the inherent `next()` and the stream traits for a cursor that has `poll_item` and `is_done`.
macro_rules! cursor {
    ($name:ident, $item:ty, $error:ty) => {
        impl $name {
            /// Waits for the next item; `None` once the stream is over.
            ///
            /// # Cancel safety
            ///
            /// This method is cancel safe. If the future is dropped before it is ready, no item is lost: the next call
            /// returns the same one.
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

pub use aggregate::aggregate_json_with;
