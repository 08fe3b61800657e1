//! The gateway: any OpenAI client, a stream for each choice, resumable and cancellable.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![warn(clippy::indexing_slicing, clippy::expect_used, clippy::panic)]

#[expect(dead_code, reason = "the routes that use it follow")]
pub(crate) mod view;
