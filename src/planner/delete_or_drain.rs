//! Whether an unclaimed sandbox that has to go is deleted at once or drained first.

use crate::model::lifecycle_hook::Hook;
use crate::model::sandbox::Sandbox;
use crate::planner::actions::Step;
use std::sync::Arc;

/// The step that removes `sandbox`: it is drained first if a handler of `pre_delete` is on it.
pub(crate) fn removal(pre_delete: &Hook, sandbox: Arc<Sandbox>) -> Step {
    if pre_delete.any_on(&sandbox) {
        Step::DrainPod { sandbox }
    } else {
        Step::DeletePod { sandbox }
    }
}
