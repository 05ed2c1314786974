//! An unclaimed sandbox as the phases see it.

use crate::model::sandbox::Sandbox;
use std::sync::Arc;

/// An unclaimed sandbox that stays, unless a phase takes it.
#[derive(Clone)]
pub(crate) struct UnclaimedSandbox {
    pub(crate) sandbox: Arc<Sandbox>,
    /// A claim could take it now, as the API defines `available`.
    pub(crate) available: bool,
    /// It is of the update revision.
    pub(crate) updated: bool,
    /// A user asked for its replacement. Marked by the phase *evict*.
    pub(crate) evict_requested: bool,
    /// It had its time to become available. Marked by the phase *evict*.
    pub(crate) overdue: bool,
    /// The last own write on it met a version conflict; nothing is tried before the watch shows what has changed.
    pub(crate) conflicted: bool,
}

impl UnclaimedSandbox {
    /// A claim may take it now. A sandbox that a user wants replaced is kept from claims.
    pub(crate) fn may_be_claimed(&self) -> bool {
        self.available && !self.conflicted && !self.evict_requested && self.sandbox.ready_index.is_some()
    }
}
