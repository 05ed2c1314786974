//! Measures the fewest available and most unclaimed sandboxes of a pool.

use crate::check::event::{Event, Kind};
use crate::check::replay;
use crate::check::world::{Owner, Pool, World};
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeSet;
use std::fmt;

/// Writes that the operator sends at once may be carried out in another order within this time: a binding before the
/// deletion that was decided on before the claim came.
pub const AT_ONCE: SignedDuration = SignedDuration::from_secs(1);

/// What the events of a part of the history come to. Counts are of unclaimed sandboxes.
#[derive(Debug)]
pub struct Extremes {
    /// Fewest available.
    pub least: i64,
    /// Fewest available beyond replicas - maxUnavailable. Sandboxes that claims took count as available until that
    /// number is reached again, or for [`AT_ONCE`]. Below 0, the operator took too many.
    pub margin: i64,
    /// Most that existed, terminating ones left out.
    pub most: i64,
    /// Most that existed beyond replicas, maxSurge and the claims that waited at that moment.
    pub excess: i64,
    /// Available ones that claims took.
    pub taken: usize,
    /// The longest time with fewer than replicas - maxUnavailable available, in seconds.
    pub below: f64,
}

impl fmt::Display for Extremes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "least available {}, most unclaimed {}, margin {}",
            self.least, self.most, self.margin
        )?;
        if self.taken > 0 {
            write!(f, ", {} taken, {:.1} s below", self.taken, self.below)?;
        }
        Ok(())
    }
}

/// The extremes of a pool over the events after version `from`.
pub fn since(events: &[Event], pool: &str, from: u64) -> Extremes {
    let mut gauge = Gauge::default();
    replay(events, |world, event| {
        if let Some(pool) = world.pools.get(pool) {
            gauge.look(world, pool, event, event.rv > from);
        }
    });
    gauge.seen
}

struct Gauge {
    seen: Extremes,
    available: BTreeSet<String>,
    floor: i64,
    /// When each one not counted as missing was taken by a claim, or asked for by a larger pool.
    lent: Vec<Timestamp>,
    below_since: Option<Timestamp>,
}

impl Default for Gauge {
    fn default() -> Self {
        Self {
            seen: Extremes {
                least: i64::MAX,
                margin: i64::MAX,
                most: 0,
                excess: i64::MIN,
                taken: 0,
                below: 0.0,
            },
            available: BTreeSet::new(),
            floor: 0,
            lent: Vec::new(),
            below_since: None,
        }
    }
}

impl Gauge {
    fn look(&mut self, world: &World, pool: &Pool, event: &Event, counts: bool) {
        let taken = event.kind == Kind::Pod
            && self.available.contains(event.uid())
            && world
                .pods
                .get(event.uid())
                .is_some_and(|p| matches!(p.owner, Owner::Claim { .. }));
        let asked = usize::try_from(pool.floor(0) - self.floor).unwrap_or(0);
        self.lent
            .extend(std::iter::repeat_n(event.at, asked + usize::from(taken)));
        self.floor = pool.floor(0);
        let free = world.pods.values().filter(|p| p.is_available(pool, event.at));
        self.available = free.map(|p| p.uid.clone()).collect();
        let available = world.available(pool, event.at);
        if available >= pool.floor(0) {
            self.lent.retain(|at| event.at.duration_since(*at) < AT_ONCE);
        }
        if !counts {
            return;
        }
        let lent = i64::try_from(self.lent.len()).unwrap_or(i64::MAX);
        let unclaimed = world.unclaimed(&pool.name);
        let allowed = pool.replicas + pool.max_surge + world.waiting(pool);
        let seen = &mut self.seen;
        seen.taken += usize::from(taken);
        seen.least = seen.least.min(available);
        seen.margin = seen.margin.min(available + lent - pool.floor(0));
        seen.most = seen.most.max(unclaimed);
        seen.excess = seen.excess.max(unclaimed - allowed);
        if available >= pool.floor(0) {
            self.below_since = None;
        } else {
            let since = *self.below_since.get_or_insert(event.at);
            seen.below = seen.below.max(event.at.duration_since(since).as_secs_f64());
        }
    }
}
