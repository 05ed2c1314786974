//! Sends one request with a deadline.

use crate::client::missing_rights::log_missing_right;
use crate::client::request_errors::{CallError, DEADLINE};
use std::future::Future;

/// Sends a request with the deadline.
///
/// # Errors
/// As [`CallError`] says.
pub async fn call<T>(request: impl Future<Output = Result<T, kube::Error>>) -> Result<T, CallError> {
    let answer = match tokio::time::timeout(DEADLINE, request).await {
        Ok(answer) => answer.map_err(CallError::Kube),
        Err(_) => Err(CallError::NoAnswer),
    };
    if let Some(right) = answer.as_ref().err().and_then(CallError::missing_right) {
        log_missing_right(&right);
    }
    answer
}
