//! Describes a steady load.

use std::time::Duration;

/// One steady load, and the names of its figures in the report.
pub struct Rate {
    pub times: &'static str,
    pub writes: &'static str,
    pub claims_a_second: u32,
    pub seconds: u32,
    /// Sandboxes that are warm before the load starts.
    pub warm: usize,
    /// Whether a sandbox is created for each that a claim takes.
    pub refilled: bool,
    /// Whether the pool and its claims have PodDisruptionBudgets, as they do by default.
    pub protected: bool,
    /// How long a served claim is kept before it is deleted; `None` if all are kept to the end.
    pub held: Option<Duration>,
}

pub const fn rate(times: &'static str, writes: &'static str, claims_a_second: u32, seconds: u32) -> Rate {
    Rate {
        times,
        writes,
        claims_a_second,
        seconds,
        warm: 200,
        refilled: true,
        protected: true,
        held: Some(Duration::from_secs(3)),
    }
}
