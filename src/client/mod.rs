//! The way to the API server: the client, its middleware and the meaning of errors.

pub mod call;
pub mod connect;
pub mod count_requests;
pub mod error_chain;
pub mod error_log;
pub mod identity;
pub mod missing_rights;
pub mod object_requests;
pub mod request_errors;
pub mod retry_after;
pub mod utf8;
pub mod watch_pauses;
