//! What a stop waits for: requests in flight, and the publications that follow from their answers.

use crate::cache::index::Index;
use crate::controllers::context::Context;
use crate::controllers::leader_election::Term;
use crate::model::claim::Claim;
use crate::model::retry::{Purpose, Stage};
use crate::planner::claim::{plan, purpose, requests};
use jiff::Timestamp;
use std::time::Duration;
use tokio::sync::watch::Receiver;

/// How often a stop checks whether claims are published.
const POLL: Duration = Duration::from_millis(5);

/// Begins nothing more, and waits until every request in flight is answered and no claim is about to be published. The
/// controller of claims has to run meanwhile. A standby plans nothing, so it waits for no claim: the leader publishes.
pub async fn finish(context: &Context, term: &Receiver<Term>) {
    context.executor.stop();
    loop {
        context.executor.answered().await;
        let plans = term.borrow().runs() && context.shared.synced();
        if !plans || !publishes(&context.shared.lock(), context.shared.now()) {
            return;
        }
        tokio::time::sleep(POLL).await;
    }
}

/// Whether the publication of a claim is queued or in flight, or is what the next plan of the claim writes.
pub fn publishes(index: &Index, now: Timestamp) -> bool {
    let mut complete = index.complete_claims();
    complete.any(|claim| is_being_published(index, claim) || is_published_next(index, claim, now))
}

fn is_being_published(index: &Index, claim: &Claim) -> bool {
    let memory = index.claim_memory(claim);
    let write = memory.and_then(|memory| memory.write.as_deref());
    write.is_some_and(|write| write.purpose == Purpose::Publish && write.stage == Stage::Sent)
}

/// A plan that needs a pause, a read or another write before the publication leaves it to the next operator, because
/// nothing else is sent any more.
fn is_published_next(index: &Index, claim: &Claim, now: Timestamp) -> bool {
    let Some(snapshot) = index.claim_snapshot(&claim.key, now) else {
        return false;
    };
    let status = requests(&snapshot, plan(&snapshot)).status;
    status.is_some_and(|status| purpose(claim, Some(&status)) == Purpose::Publish)
}
