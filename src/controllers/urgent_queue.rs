//! What is to be reconciled at once: each object once, claims before pools.

use crate::cache::reconcile_request::ReconcileRequest;
use indexmap::IndexSet;

/// Claims in one round, at most. Each round plans a pool once, so in a burst a plan serves all claims that came since
/// the last round, and no binding waits for long behind the claims of others.
const CLAIMS_IN_A_ROUND: usize = 32;

/// Requests that are due, in the order in which they came.
#[derive(Debug, Default)]
pub struct UrgentQueue {
    claims: IndexSet<ReconcileRequest>,
    others: IndexSet<ReconcileRequest>,
}

impl UrgentQueue {
    /// Adds a request, unless the same one is due already.
    pub fn add(&mut self, request: ReconcileRequest) {
        match request {
            ReconcileRequest::Claim(_) => self.claims.insert(request),
            ReconcileRequest::Pool(_) | ReconcileRequest::FailedWrites => self.others.insert(request),
        };
    }

    /// Takes the requests of the next round; empty when nothing is due. Claims come first: the plan of a claim is short,
    /// and often publishes a binding; that of a pool looks at all of its sandboxes.
    pub fn next_round(&mut self) -> Vec<ReconcileRequest> {
        let claims = self.claims.len().min(CLAIMS_IN_A_ROUND);
        self.claims.drain(..claims).chain(self.others.drain(..)).collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::model::Key;

    #[test]
    fn each_object_is_due_once_and_claims_come_before_pools() {
        let mut queue = UrgentQueue::default();
        let pool = ReconcileRequest::Pool(Key::new("default", "python"));
        let claim = |number: usize| ReconcileRequest::Claim(Key::new("default", format!("run-{number}")));
        for number in 0..CLAIMS_IN_A_ROUND + 1 {
            queue.add(pool.clone());
            queue.add(claim(number));
            queue.add(claim(0));
        }
        let mut first: Vec<_> = (0..CLAIMS_IN_A_ROUND).map(claim).collect();
        first.push(pool);
        assert_eq!(queue.next_round(), first);
        assert_eq!(queue.next_round(), [claim(CLAIMS_IN_A_ROUND)]);
        assert!(queue.next_round().is_empty());
    }
}
