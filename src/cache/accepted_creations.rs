//! How long an accepted pod shows that the API server accepts more pods of the same pool.

use jiff::{SignedDuration, Timestamp};

/// How long an accepted pod counts as proof that the API server accepts the next pod of the pool.
const ACCEPTANCE_LIFETIME: SignedDuration = SignedDuration::from_secs(2);

/// The last pod of a pool that the API server accepted, if there is one.
#[derive(Clone, Debug, Default)]
pub struct AcceptedCreation(Option<Acceptance>);

#[derive(Clone, Debug)]
struct Acceptance {
    /// `metadata.generation` of the pool. A changed spec needs a new proof.
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

    /// Whether the API server has accepted a pod of this generation of the pool so lately that it accepts the next,
    /// too.
    pub(crate) fn is_creation_proven(&self, generation: i64, now: Timestamp) -> bool {
        self.0.as_ref().is_some_and(|accepted| {
            accepted.generation == generation && now.duration_since(accepted.at) < ACCEPTANCE_LIFETIME
        })
    }
}
