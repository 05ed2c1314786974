//! What may happen in a world.

use crate::operator::Due;
use crate::server::Kind;
use serde::{Deserialize, Serialize};

/// One thing that happens. A list of them is a story, and is written down as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Action {
    /// The next event of a kind reaches an operator.
    Deliver(usize, Kind),
    /// An operator that has just started lists a kind.
    List(usize, Kind),
    /// A watch was broken: its kind is listed anew, and what was on its way is never told.
    Relist(usize, Kind),
    /// An operator looks at an object.
    Reconcile(usize, Due),
    /// The API server carries out a request: operator, task, request.
    Serve(usize, usize, usize),
    /// Its answer arrives.
    Answer(usize, usize, usize),
    /// The connection breaks: the request or its answer is lost.
    Lose(usize, usize, usize),
    /// A request that was given up long ago is carried out after all.
    ServeLate(usize),
    /// The pause of a task is over.
    Wake(usize, usize),
    /// The watches of an operator have been silent for so long that own writes are settled by live reads.
    Settle(usize),
    /// An operator is killed; another one starts in its place.
    Crash(usize),
    /// The last of several operators ends: it leads no more.
    Retire,
    /// The kubelet reports a pod Ready.
    Ready(String),
    /// The kubelet reports a pod not Ready.
    Unready(String),
    /// The handler of preNormal takes back that a pod may be available.
    Revoke(String),
    /// A pod that is not Ready will never be so by itself.
    Hang(String),
    /// A pod is marked Failed.
    Die(String),
    /// The handler of preNormal lets a pod that is Ready be available.
    Admit(String),
    /// The handler of preDelete lets a pod that drains go.
    Release(String),
    /// A pod that is being deleted is gone.
    End(String),
    /// A pool or claim that is being deleted is gone.
    Finish(Kind, String),
    /// The garbage collector deletes a pod whose owner is gone.
    Collect(String),
    /// A user creates the next claim.
    Claim,
    /// A user deletes a claim.
    Unclaim(String),
    /// A user makes the next edit of the pool.
    Edit,
    /// A user asks for the replacement of a pod.
    Evict(String),
    /// A user deletes a pod.
    Remove(String),
    /// A user deletes a revision.
    Prune(String),
    /// A quota has no room for another pod.
    Forbid,
    /// There is room again.
    Allow,
    /// So much time passes that something becomes due.
    Pass,
}

impl Action {
    /// It needs no fault and no user: it happens in the end, whatever else happens.
    pub fn is_course(&self) -> bool {
        !matches!(
            self,
            Self::Relist(..)
                | Self::Lose(..)
                | Self::ServeLate(_)
                | Self::Settle(_)
                | Self::Crash(_)
                | Self::Retire
                | Self::Unready(_)
                | Self::Revoke(_)
                | Self::Hang(_)
                | Self::Die(_)
                | Self::Claim
                | Self::Unclaim(_)
                | Self::Edit
                | Self::Evict(_)
                | Self::Remove(_)
                | Self::Prune(_)
                | Self::Forbid
                | Self::Pass
        )
    }
}
