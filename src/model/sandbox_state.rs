//! Where a sandbox stands for its pool at one moment.

use crate::api::labels;
use crate::model::availability::AvailabilityRule;
use crate::model::sandbox::{Owner, Sandbox};
use jiff::Timestamp;

/// Where a sandbox stands for a pool. Every sandbox is in exactly one state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SandboxState {
    /// Unclaimed and not available yet, or no more.
    Warming,
    /// Unclaimed, and a claim could take it now.
    Available,
    /// It belongs to a claim, whatever its phase.
    Claimed,
    /// Unclaimed, and its deletion waits for its preDelete hooks.
    Draining,
    /// Unclaimed, and its phase is final.
    Finished,
    /// Unclaimed, with a state label that is not understood or was set by hand. The operator neither binds nor deletes
    /// it.
    SetAside,
    /// Unclaimed or claimed, with a deletion timestamp.
    Terminating,
    /// It belongs to another pool or to nobody.
    Foreign,
}

impl SandboxState {
    /// Name of the state in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Warming => "warming",
            Self::Available => "available",
            Self::Claimed => "claimed",
            Self::Draining => "draining",
            Self::Finished => "finished",
            Self::SetAside => "set-aside",
            Self::Terminating => "terminating",
            Self::Foreign => "foreign",
        }
    }
}

impl Sandbox {
    /// Where the sandbox stands at `now` for the pool with UID `pool`, whose spec asks for `availability_rule`.
    pub fn state_at(&self, pool: &str, availability_rule: &AvailabilityRule, now: Timestamp) -> SandboxState {
        let claimed = match &self.owner {
            Owner::Claim { .. } => true,
            Owner::Pool { uid } if uid == pool => false,
            Owner::Pool { .. } | Owner::Other => return SandboxState::Foreign,
        };
        match self.state.as_str() {
            _ if self.terminating => SandboxState::Terminating,
            _ if claimed => SandboxState::Claimed,
            labels::DRAINING => SandboxState::Draining,
            labels::WARM if self.finished() => SandboxState::Finished,
            labels::WARM if self.is_available(availability_rule, now) => SandboxState::Available,
            labels::WARM => SandboxState::Warming,
            _ => SandboxState::SetAside,
        }
    }
}
