//! The page at `/`.

use crate::api_error::ApiError;

/// The page is not part of this build.
pub(super) async fn page() -> ApiError {
    ApiError::NOT_FOUND
}
