//! Explains why the warming sandboxes of a pool are not available, and how long the operator waits for them.

use crate::cli::kubectl::why::format::{are, between, sandboxes, timestamp};
use crate::cli::pool_plan::PoolPlan;
use crate::model::sandbox::{PodPhase, Sandbox};
use crate::model::sandbox_state::SandboxState;
use crate::planner::commonest_warming_reason::WarmingReasons;
use std::sync::Arc;

/// The warming sandboxes, as the watch shows them.
fn warming(pool_plan: &PoolPlan) -> impl Iterator<Item = &Arc<Sandbox>> {
    let (pool, now) = (&pool_plan.snapshot.pool, pool_plan.snapshot.now);
    let sandboxes = pool_plan.snapshot.sandboxes.iter().map(|entry| &entry.sandbox);
    sandboxes
        .filter(move |s| s.state_at(&pool.uid, &pool.spec.availability_rule, now) == SandboxState::Warming)
}

/// A sentence for each reason, and one on the sandboxes that start without any.
pub(super) fn reasons(pool_plan: &PoolPlan) -> Vec<String> {
    let reasons = WarmingReasons::of(&pool_plan.snapshot);
    let mut sentences: Vec<String> = reasons
        .all
        .iter()
        .map(|why| {
            format!(
                "{}; 'kubectl warmpool why pod/{} -n {}' says more.",
                why.sentence(),
                why.sandbox,
                pool_plan.snapshot.pool.key.namespace
            )
        })
        .collect();
    sentences.extend(starting(pool_plan, &reasons));
    sentences
}

/// How far the warming sandboxes without a reason are.
fn starting(pool_plan: &PoolPlan, reasons: &WarmingReasons) -> Option<String> {
    let with_reason: usize = reasons.all.iter().map(|why| why.count).sum();
    let rest = reasons.warming.saturating_sub(with_reason);
    if rest == 0 {
        return None;
    }
    let (mut unscheduled, mut starting, mut unready) = (0, 0, 0);
    for sandbox in warming(pool_plan).filter(|s| s.not_running_reason.is_none()) {
        match (sandbox.phase, &sandbox.node, sandbox.ready_since) {
            (_, None, _) => unscheduled += 1,
            (PodPhase::Running, _, None) => unready += 1,
            (PodPhase::Running, _, Some(_)) => {}
            _ => starting += 1,
        }
    }
    let counts = [
        (unscheduled, "not scheduled yet"),
        (starting, "starting"),
        (unready, "Running and not Ready"),
    ];
    let clauses: Vec<_> = counts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, state)| format!("{count} {} {state}", are(*count)))
        .collect();
    let verb = if rest == 1 { "starts" } else { "start" };
    (!clauses.is_empty()).then(|| format!("{} {verb} up: {}.", sandboxes(rest), clauses.join(", ")))
}

/// When the operator replaces the first of them; `None` where it waits for none.
pub(super) fn first_replacement(pool_plan: &PoolPlan) -> Option<String> {
    let (pool, now) = (&pool_plan.snapshot.pool, pool_plan.snapshot.now);
    if pool.error.is_some() {
        return None;
    }
    let rule = &pool.spec.availability_rule;
    let waits = warming(pool_plan).filter(|sandbox| sandbox.available_at(rule).is_none());
    let due = waits.map(|sandbox| sandbox.overdue_at(pool.spec.warm_up)).min()?;
    (due > now).then(|| {
        format!(
            "The operator waits for the warming sandboxes, and replaces the first at {}, in {}, unless it is available before \
             (warmUpDeadlineSeconds).",
            timestamp(due),
            between(now, due)
        )
    })
}
