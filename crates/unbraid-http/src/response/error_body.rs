//! Reads the body of an error.

use futures::StreamExt;

use crate::{
    body::ByteStream,
    limits::{MAX_ERROR_BODY_BYTES, MAX_ERROR_BODY_TIME},
};

/// Reads a bounded part of a body for a bounded time, and appends it to the bytes that were read before.
///
/// A body that is cut, stalls or never ends causes no error: the status is reported in any case.
pub(super) async fn read(mut begin: Vec<u8>, mut rest: ByteStream) -> String {
    let reading = async {
        while begin.len() < MAX_ERROR_BODY_BYTES {
            let Some(Ok(chunk)) = rest.next().await else {
                break;
            };
            begin.extend_from_slice(&chunk);
        }
    };
    // After the timeout, what was read until then is used.
    let _in_time = tokio::time::timeout(MAX_ERROR_BODY_TIME, reading).await;
    begin.truncate(MAX_ERROR_BODY_BYTES);
    String::from_utf8_lossy(&begin).into_owned()
}
