//! The kube client, what its requests pass through, and the words for requests that fail.

pub mod request_errors;
pub mod utf8;
