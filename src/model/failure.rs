//! Why a request failed, as far as decisions need it.

use std::time::Duration;

/// What a failed request means for its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// 409, 412, 422 of a failed `test`: the object has changed since it was read, or its name is taken.
    Conflict,
    /// 422 that names labels or annotations: no object can have them.
    Invalid,
    /// 404: the object is gone.
    Gone,
    /// The API server rejects the write. A retry helps only when something else changes.
    Rejected,
    /// The operator's role does not allow the request. The missing right is in the log.
    Denied,
    /// The API server asks for a delay, at most this long. The write did not happen.
    Throttled(Duration),
    /// An admission webhook could not be called. The write did not happen.
    NotAdmitted,
    /// No answer, a broken connection or an error of the server: the write may or may not have happened.
    Unknown,
}

/// Why a request failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What it means.
    pub class: Class,
    /// The API server's message, or why there was no answer.
    pub message: String,
}

impl Failure {
    /// The failure is in the log already: a missing right is logged once, not at each try.
    pub fn is_logged(&self) -> bool {
        self.class == Class::Denied
    }
}
