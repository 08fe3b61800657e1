use serde_json::json;

use super::count;
use crate::{HttpError, Request};

#[test]
fn a_fan_out_takes_so_many_requests_and_one_more_is_an_error() {
    let chat = Request::chat("m");
    assert_eq!(count(&chat, 1024).unwrap(), 1024);
    assert!(count(&chat, 1025).is_err());
    let prompts = Request::text("m", json!(["a", "b", "c"]));
    assert_eq!(count(&prompts, 341).unwrap(), 1023);
    let refused = count(&prompts, 342).unwrap_err();
    let HttpError::TooManyChoices { requested, max } = refused else {
        panic!("{refused:?}")
    };
    assert_eq!((requested, max), (1026, 1024));
    let tokens = Request::text("m", json!(vec![1; 5000]));
    assert_eq!(count(&tokens, 1024).unwrap(), 1024);
    let none = Request::text("m", json!([]));
    assert_eq!(count(&none, 2).unwrap(), 2);
}
