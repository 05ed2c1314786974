//! Measures the fewest available and most unclaimed sandboxes of a pool.

use crate::check::event::{Change, Event, Kind};
use crate::check::replay;
use crate::check::requests::Requests;
use crate::check::world::{Owner, Pool, World};
use crate::cluster_state::{is_terminating, label};
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeSet;
use std::fmt;

/// Writes that the operator decides on at once arrive at the API server within this time, in whatever order.
const AT_ONCE: SignedDuration = SignedDuration::from_secs(1);

/// What the events of a part of the history come to. Counts are of unclaimed sandboxes.
#[derive(Debug)]
pub struct Extremes {
    /// Fewest available.
    pub least: i64,
    /// Fewest available beyond replicas - maxUnavailable. Sandboxes that claims took count as available until that
    /// number is reached again and every deletion that was decided on by then is carried out. Below 0, the operator took
    /// too many.
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

/// The extremes of a pool over the events after version `from`. `requests` tell when a deletion was decided on: a busy API
/// server may carry it out seconds later.
pub fn since(events: &[Event], requests: &Requests, pool: &str, from: u64) -> Extremes {
    let mut gauge = Gauge {
        removals: removals(events, requests),
        ..Gauge::default()
    };
    replay(events, |world, event| {
        if let Some(pool) = world.pools.get(pool) {
            gauge.look(world, pool, event, event.rv > from);
        }
    });
    gauge.seen
}

/// A pod that the operator deleted or drained.
struct Removal {
    decided: Timestamp,
    carried_out: Timestamp,
}

/// Every deletion and drain of a pod.
fn removals(events: &[Event], requests: &Requests) -> Vec<Removal> {
    let mut going = BTreeSet::new();
    let pods = events.iter().filter(|event| event.kind == Kind::Pod);
    pods.filter_map(|event| {
        let drains = label(&event.object, "state") == "draining";
        let goes = event.change == Change::Deleted || is_terminating(&event.object);
        let verb = if goes { "delete" } else { "patch" };
        let is_new = (goes || drains) && going.insert((verb, event.uid()));
        is_new.then(|| Removal {
            decided: requests.decided(verb, event.name(), event.at),
            carried_out: event.at,
        })
    })
    .collect()
}

struct Gauge {
    seen: Extremes,
    removals: Vec<Removal>,
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
            removals: Vec::new(),
            available: BTreeSet::new(),
            floor: 0,
            lent: Vec::new(),
            below_since: None,
        }
    }
}

impl Gauge {
    /// Whether a removal that is not carried out at `now` was decided on before the operator knew of what happened at `at`.
    fn may_be_unknown(&self, at: Timestamp, now: Timestamp) -> bool {
        let mut on_the_way = self.removals.iter().filter(|removal| removal.carried_out > now);
        now.duration_since(at) < AT_ONCE
            || on_the_way.any(|removal| removal.decided.duration_since(at) < AT_ONCE)
    }

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
            let mut lent = std::mem::take(&mut self.lent);
            lent.retain(|at| self.may_be_unknown(*at, event.at));
            self.lent = lent;
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
