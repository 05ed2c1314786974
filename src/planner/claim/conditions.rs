//! What the conditions of a claim say.

use crate::api::SandboxClaimStatus;
use crate::api::conditions as api_conditions;
use crate::api::conditions::{Statement, Truth, claim as reasons};
use crate::model::claim::Claim;
use crate::model::known_nodes::KnownNodes;
use crate::model::leaving_reason::LeavingReason;
use crate::model::sandbox::{PodPhase, Sandbox};
use jiff::Timestamp;
use std::sync::Arc;

/// `status` with these conditions, and with the reason of the first that does not hold.
pub(crate) fn with_conditions(
    claim: &Claim,
    mut status: SandboxClaimStatus,
    statements: Vec<Statement>,
    now: Timestamp,
) -> SandboxClaimStatus {
    let set = |s| api_conditions::set(&claim.status.conditions, s, Some(claim.generation), now);
    status.reason = statements
        .iter()
        .find(|statement| statement.status != Truth::True)
        .map_or(String::new(), |statement| statement.reason.to_string());
    status.conditions = statements.into_iter().map(set).collect();
    status
}

/// The message names the first sandbox that cannot stay on its node, if there is one: no other was available, or the
/// node was cordoned since.
pub(crate) fn bound(sandboxes: &[Arc<Sandbox>], nodes: &KnownNodes, now: Timestamp) -> Statement {
    let mut message = match sandboxes {
        [sandbox] => format!("sandbox {} belongs to this claim", sandbox.key.name),
        all => format!("{} sandboxes belong to this claim", all.len()),
    };
    let leaving = sandboxes.iter().find_map(|sandbox| {
        let leaving = nodes.leaving(sandbox, now)?;
        (leaving.reason != LeavingReason::EvictRequested).then_some((sandbox, leaving))
    });
    if let Some((sandbox, leaving)) = leaving {
        let node = sandbox.node.as_deref().unwrap_or_default();
        message += &format!(
            "; sandbox {} may be lost, {} ({node})",
            sandbox.key.name,
            leaving.reason.clause()
        );
    }
    Statement {
        type_: api_conditions::BOUND,
        status: Truth::True,
        reason: reasons::BOUND,
        message,
    }
}

pub(crate) fn unbound(reason: &'static str, message: &str) -> Vec<Statement> {
    let message = message.to_string();
    vec![
        Statement {
            type_: api_conditions::BOUND,
            status: Truth::False,
            reason,
            message: message.clone(),
        },
        Statement {
            type_: api_conditions::READY,
            status: Truth::False,
            reason: reasons::NOT_BOUND,
            message,
        },
    ]
}

/// Ready is True while all sandboxes of the claim are Ready. The message names the first that is not.
pub(crate) fn readiness(sandboxes: &[Arc<Sandbox>]) -> Statement {
    let (holds, reason, message) = match (sandboxes.iter().find_map(|s| not_ready(s)), sandboxes) {
        (Some((reason, message)), _) => (false, reason, message),
        (None, [sandbox]) => (
            true,
            reasons::SANDBOX_READY,
            format!("sandbox {} is ready", sandbox.key.name),
        ),
        (None, all) => (
            true,
            reasons::SANDBOX_READY,
            format!("all {} sandboxes are ready", all.len()),
        ),
    };
    Statement {
        type_: api_conditions::READY,
        status: holds.into(),
        reason,
        message,
    }
}

fn not_ready(sandbox: &Sandbox) -> Option<(&'static str, String)> {
    let name = &sandbox.key.name;
    if sandbox.terminating {
        Some((
            reasons::SANDBOX_NOT_READY,
            format!("sandbox {name} is being deleted"),
        ))
    } else if sandbox.phase == PodPhase::Succeeded {
        Some((
            reasons::SANDBOX_COMPLETED,
            format!("sandbox {name} has ended with success"),
        ))
    } else if sandbox.ready_since.is_none() {
        Some((reasons::SANDBOX_NOT_READY, format!("sandbox {name} is not ready")))
    } else {
        None
    }
}
