//! Measures a load by hand right before and right after the operator serves it.
//!
//! A shared machine is faster in one minute than in the next, so both are measured within the same minutes.

use crate::Outcome;
use crate::lab::Lab;

/// Runs `by_operator`, with `by_hand` before and after it. Where stacks of the operator are recorded, nothing is done by hand.
pub async fn measure<F>(
    lab: &Lab<'_>,
    by_hand: impl Fn() -> F,
    by_operator: impl Future<Output = Outcome<()>>,
) -> Outcome<()>
where
    F: Future<Output = Outcome<()>>,
{
    if lab.records_stacks() {
        return by_operator.await;
    }
    by_hand().await?;
    by_operator.await?;
    by_hand().await
}
