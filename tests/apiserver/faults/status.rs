//! Words the API server's rejections.

use serde_json::{Value, json};

/// A `Status` as the API server words its rejections.
pub fn status(code: u16) -> Value {
    let (reason, message) = match code {
        403 => ("Forbidden", "exceeded quota: narrow"),
        409 => ("Conflict", "the object has been modified"),
        410 => ("Expired", "too old resource version"),
        422 => ("Invalid", "the patch cannot be applied"),
        429 => ("TooManyRequests", "the server has received too many requests"),
        503 => (
            "ServiceUnavailable",
            "the server is currently unable to handle the request",
        ),
        504 => (
            "Timeout",
            "the server was unable to return a response in the time allotted",
        ),
        _ => (
            "InternalError",
            "an error on the server has prevented the request from succeeding",
        ),
    };
    let details = if code == 429 {
        json!({"retryAfterSeconds": 1})
    } else {
        json!({})
    };
    json!({
        "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure",
        "code": code, "reason": reason, "message": format!("{message} (injected)"), "details": details,
    })
}
