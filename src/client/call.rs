//! Sends one request with a deadline.

use crate::client::missing_rights::log_missing_right;
use crate::client::request_errors::CallError;
use std::future::Future;
use std::time::Duration;

/// Longest wait for the answer to one request. kube-rs has no such limit, and a request without one can hang for as
/// long as a half-open connection lives.
pub const DEADLINE: Duration = Duration::from_secs(15);

/// Sends a request with the usual deadline.
///
/// # Errors
/// As [`CallError`] says.
pub async fn call<T>(request: impl Future<Output = Result<T, kube::Error>>) -> Result<T, CallError> {
    call_within(DEADLINE, request).await
}

/// Sends a request with this deadline; zero sets none.
///
/// # Errors
/// As [`CallError`] says.
pub async fn call_within<T>(
    deadline: Duration,
    request: impl Future<Output = Result<T, kube::Error>>,
) -> Result<T, CallError> {
    let limited = async {
        if deadline.is_zero() {
            return Ok(request.await);
        }
        tokio::time::timeout(deadline, request).await
    };
    let answer = match limited.await {
        Ok(answer) => answer.map_err(CallError::Kube),
        Err(_) => Err(CallError::NoAnswer(deadline)),
    };
    if let Some(right) = answer.as_ref().err().and_then(CallError::missing_right) {
        log_missing_right(&right);
    }
    answer
}
