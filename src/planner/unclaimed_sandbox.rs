//! An unclaimed sandbox as the phases see it.

use crate::model::leaving_reason::{Leaving, LeavingReason};
use crate::model::node::Node;
use crate::model::sandbox::Sandbox;
use std::sync::Arc;

/// An unclaimed sandbox that stays, unless a phase takes it.
#[derive(Clone)]
pub(crate) struct UnclaimedSandbox<'a> {
    pub(crate) sandbox: &'a Arc<Sandbox>,
    /// The node that it is on, where that is known.
    pub(crate) node: Option<&'a Node>,
    /// A claim could take it now, as the API defines `available`.
    pub(crate) available: bool,
    /// It is of the update revision.
    pub(crate) updated: bool,
    /// Why it is to be replaced although nothing is wrong with it. Marked by the phase *evict*.
    pub(crate) leaving: Option<Leaving>,
    /// It had its time to become available. Marked by the phase *evict*.
    pub(crate) overdue: bool,
    /// The last own write on it met a version conflict; nothing is tried before the watch shows what has changed.
    pub(crate) conflicted: bool,
}

impl UnclaimedSandbox<'_> {
    /// A user requested its replacement.
    pub(crate) fn evict_requested(&self) -> bool {
        self.is_leaving_for(LeavingReason::EvictRequested)
    }

    /// It cannot stay on its node.
    pub(crate) fn leaves_node(&self) -> bool {
        self.leaving.is_some() && !self.evict_requested()
    }

    /// It counts for the pool as long as it is there, and nothing has to replace it.
    pub(crate) fn stays(&self) -> bool {
        self.leaving.is_none()
    }

    pub(crate) fn is_leaving_for(&self, reason: LeavingReason) -> bool {
        self.leaving.is_some_and(|leaving| leaving.reason == reason)
    }

    /// A claim may take it now. A sandbox that a user wants replaced is kept from claims, and so is one whose node is
    /// gone: nothing runs there.
    pub(crate) fn may_be_claimed(&self) -> bool {
        let is_fit = !self.evict_requested() && !self.is_leaving_for(LeavingReason::NodeGone);
        self.available && !self.conflicted && is_fit && self.sandbox.ready_index.is_some()
    }
}
