//! For how long a pod that the API server accepted proves that it accepts more of the same pool.

use jiff::{SignedDuration, Timestamp};

/// How long the API server's acceptance of one pod says that it accepts another of the same pool.
const ACCEPTANCE_LIFETIME: SignedDuration = SignedDuration::from_secs(2);

/// The last pod of a pool that the API server accepted, if there is one.
#[derive(Clone, Debug, Default)]
pub struct AcceptedCreation(Option<Acceptance>);

#[derive(Clone, Debug)]
struct Acceptance {
    /// `metadata.generation` of the pool. A changed spec proves itself anew.
    generation: i64,
    at: Timestamp,
}

impl AcceptedCreation {
    /// The API server accepted a pod of this generation of the pool at `now`.
    pub(crate) fn note(&mut self, generation: i64, now: Timestamp) {
        self.0 = Some(Acceptance { generation, at: now });
    }

    /// A creation failed, or the clock was set back: nothing is proven.
    pub(crate) fn forget(&mut self) {
        self.0 = None;
    }

    /// Whether the API server has accepted a pod of this generation of the pool so lately that it accepts the next, too.
    pub(crate) fn is_creation_proven(&self, generation: i64, now: Timestamp) -> bool {
        self.0.as_ref().is_some_and(|accepted| {
            accepted.generation == generation && now.duration_since(accepted.at) < ACCEPTANCE_LIFETIME
        })
    }
}
