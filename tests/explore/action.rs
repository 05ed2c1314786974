//! What may happen in a world.

use crate::api_server::Kind;
use crate::operator::Due;
use serde::{Deserialize, Serialize};

/// One thing that happens. A list of them is a story, and is written down as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Action {
    /// The next event of a kind reaches an operator.
    Deliver(usize, Kind),
    /// An operator that has just started lists a kind.
    List(usize, Kind),
    /// A watch was broken: its kind is listed anew, and events on their way never arrive.
    Relist(usize, Kind),
    /// An operator reconciles an object.
    Reconcile(usize, Due),
    /// The API server serves a request: operator, request in flight.
    Serve(usize, usize),
    /// A policy of the API server rejects a binding: operator, request in flight.
    Reject(usize, usize),
    /// The answer arrives.
    Answer(usize, usize),
    /// The connection breaks: the request or its answer is lost.
    Lose(usize, usize),
    /// A request that was given up long ago is served after all.
    ServeLate(usize),
    /// The watches of an operator have been silent for so long that live reads confirm its writes.
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
    /// A user cordons a node.
    Cordon(String),
    /// A user takes the cordon back.
    Uncordon(String),
    /// A node is deleted, with all that runs there.
    Lost(String),
    /// A user deletes a revision.
    Prune(String),
    /// A quota has no room for another pod.
    Forbid,
    /// There is room again.
    Allow,
    /// So much time passes that something becomes due.
    Pass,
    /// The rest of that second passes, too: what becomes due in it is due together.
    PassSecond,
}
