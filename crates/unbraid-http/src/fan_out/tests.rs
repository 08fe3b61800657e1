use serde_json::json;

use super::count_requests;
use crate::{HttpError, Request};

#[test]
fn a_fan_out_above_the_limit_of_requests_is_an_error() {
    let chat = Request::chat("m");
    assert_eq!(count_requests(&chat, 1024).unwrap(), 1024);
    assert!(count_requests(&chat, 1025).is_err());
    let prompts = Request::text("m", json!(["a", "b", "c"]));
    assert_eq!(count_requests(&prompts, 341).unwrap(), 1023);
    let error = count_requests(&prompts, 342).unwrap_err();
    let HttpError::TooManyChoices { requested, max } = error else {
        panic!("{error:?}")
    };
    assert_eq!((requested, max), (1026, 1024));
    let tokens = Request::text("m", json!(vec![1; 5000]));
    assert_eq!(count_requests(&tokens, 1024).unwrap(), 1024);
    let none = Request::text("m", json!([]));
    assert_eq!(count_requests(&none, 2).unwrap(), 2);
}
