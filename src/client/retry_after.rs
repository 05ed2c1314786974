//! Keeps for how long the API server asks to wait.
//!
//! An API server that sheds load answers 429 in plain text and puts the seconds into the header `Retry-After` (API
//! Priority and Fairness, `--max-requests-inflight`). kube-rs reads them only from the `details` of a `Status`.

use axum::body::{Bytes, HttpBody};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, Response, StatusCode};
use http_body_util::{Either, Full};
use serde_json::json;

/// The answer, with a `Status` in place of a text that asks to wait.
pub fn with_status<B: HttpBody<Data = Bytes>>(answer: Response<B>) -> Response<Either<Full<Bytes>, B>> {
    let Some(seconds) = asked(&answer) else {
        return answer.map(Either::Right);
    };
    let status = json!({
        "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure", "reason": "TooManyRequests",
        "code": StatusCode::TOO_MANY_REQUESTS.as_u16(), "details": {"retryAfterSeconds": seconds},
        "message": format!("the API server asks to wait {seconds} s"),
    });
    let (mut parts, _) = answer.into_parts();
    parts.headers.remove(CONTENT_LENGTH);
    let json = HeaderValue::from_static("application/json");
    parts.headers.insert(CONTENT_TYPE, json);
    Response::from_parts(parts, Either::Left(status.to_string().into()))
}

/// The seconds that an answer without a `Status` asks to wait.
fn asked<B>(answer: &Response<B>) -> Option<u32> {
    let header = |name| answer.headers().get(name)?.to_str().ok();
    let is_status = header(CONTENT_TYPE).is_some_and(|kind| kind.starts_with("application/json"));
    let asks = answer.status() == StatusCode::TOO_MANY_REQUESTS && !is_status;
    header(RETRY_AFTER).filter(|_| asks)?.parse().ok()
}
