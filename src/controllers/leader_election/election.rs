//! Who leads: the rules of client-go's leader election over plain data, without a client or a clock. Another's lease
//! is judged by when its record was seen to change here, never by the times written in it, so clocks need not agree.

use crate::controllers::leader_election::timing::Timing;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use std::time::{Duration, Instant};
use thiserror::Error;

/// What one candidate knows and holds.
#[derive(Debug)]
pub struct Election {
    /// Name, namespace and marks of the lease, for when it is to be created or taken over.
    metadata: ObjectMeta,
    identity: String,
    timing: Timing,
    /// The lease as it was seen last; `None` when there is none.
    observed: Option<Observed>,
    /// While leading: when the last renewal that was confirmed had been sent.
    renewed: Option<Instant>,
}

#[derive(Debug)]
struct Observed {
    lease: Lease,
    /// When its record was first seen as it is.
    since: Instant,
}

/// What a candidate or leader has to do now.
#[derive(Debug, PartialEq)]
pub enum Turn {
    /// Write this lease: create it where it has no resource version, else replace the one that has it.
    Write(Box<Lease>),
    /// Another holds the lease, for this much longer if it is not renewed.
    Wait(Duration),
    /// Leadership is over.
    Lost(Lost),
}

/// Why leadership is over.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Lost {
    /// No renewal was confirmed in time.
    #[error("the lease could not be renewed for {} s", .0.as_secs_f64())]
    Deadline(Duration),
    /// The lease is in other hands.
    #[error("{0} holds the lease")]
    Taken(String),
}

impl Election {
    /// A candidate that has seen nothing yet. `identity` tells it from every other process.
    pub fn new(metadata: ObjectMeta, identity: String, timing: Timing) -> Self {
        Self {
            metadata,
            identity,
            timing,
            observed: None,
            renewed: None,
        }
    }

    /// The lease was read at `now`. What else of the object changes than its record renews nothing.
    pub fn saw(&mut self, lease: Option<Lease>, now: Instant) {
        let before = self.observed.take();
        self.observed = lease.map(|lease| Observed {
            since: before
                .filter(|before| before.lease.spec == lease.spec)
                .map_or(now, |before| before.since),
            lease,
        });
    }

    /// The API server has stored `lease` for us, in a request that was sent at `sent`. What is ours counts from then:
    /// nobody else can have seen it earlier.
    pub fn wrote(&mut self, lease: Lease, sent: Instant) {
        self.observed = Some(Observed { lease, since: sent });
        self.renewed = Some(sent);
    }

    /// What to do at `now`; `wall` is what the clock on the wall says, for people who read the lease.
    pub fn turn(&self, now: Instant, wall: Timestamp) -> Turn {
        if self.deadline().is_some_and(|deadline| now >= deadline) {
            return Turn::Lost(Lost::Deadline(self.timing.renew_deadline()));
        }
        let Some(Observed { lease, since }) = &self.observed else {
            return Turn::Write(Box::new(self.lease(None, wall)));
        };
        let holder = holder(lease);
        if !holder.is_empty() && holder != self.identity {
            if self.renewed.is_some() {
                return Turn::Lost(Lost::Taken(holder.to_string()));
            }
            let left = duration(lease).saturating_sub(now.saturating_duration_since(*since));
            if !left.is_zero() {
                return Turn::Wait(left);
            }
        }
        Turn::Write(Box::new(self.lease(Some(lease), wall)))
    }

    /// While leading: when leadership is over unless a renewal is confirmed before.
    pub fn deadline(&self) -> Option<Instant> {
        Some(self.renewed? + self.timing.renew_deadline())
    }

    /// Who holds the lease, as far as was seen; empty when nobody does.
    pub fn holder(&self) -> &str {
        self.observed
            .as_ref()
            .map_or("", |observed| holder(&observed.lease))
    }

    /// Whether there is a lease that nobody holds.
    pub fn is_free(&self) -> bool {
        self.observed.is_some() && self.holder().is_empty()
    }

    /// The lease as it is given up, if it was seen as ours.
    pub fn release(&self, wall: Timestamp) -> Option<Lease> {
        if self.holder() != self.identity {
            return None;
        }
        let mut lease = self.observed.as_ref()?.lease.clone();
        let spec = lease.spec.get_or_insert_default();
        spec.holder_identity = Some(String::new());
        spec.lease_duration_seconds = Some(1);
        spec.acquire_time = Some(MicroTime(wall));
        spec.renew_time = Some(MicroTime(wall));
        Some(lease)
    }

    /// The lease in our hands, after `before`. What others keep in it stays.
    fn lease(&self, before: Option<&Lease>, wall: Timestamp) -> Lease {
        let mut lease = before.cloned().unwrap_or_else(|| Lease {
            metadata: self.metadata.clone(),
            spec: None,
        });
        let renewal = holder(&lease) == self.identity;
        let spec: &mut LeaseSpec = lease.spec.get_or_insert_default();
        if !renewal {
            let transitions = spec.lease_transitions.unwrap_or(0);
            spec.lease_transitions = Some(before.map_or(0, |_| transitions.saturating_add(1)));
            spec.holder_identity = Some(self.identity.clone());
            spec.acquire_time = Some(MicroTime(wall));
            let (labels, annotations) = (&self.metadata.labels, &self.metadata.annotations);
            let marks = &mut lease.metadata;
            marks
                .labels
                .get_or_insert_default()
                .extend(labels.clone().unwrap_or_default());
            marks
                .annotations
                .get_or_insert_default()
                .extend(annotations.clone().unwrap_or_default());
        }
        spec.lease_duration_seconds = Some(self.timing.lease_seconds());
        spec.renew_time = Some(MicroTime(wall));
        lease
    }
}

/// Who holds a lease; empty when nobody does.
pub(crate) fn holder(lease: &Lease) -> &str {
    let spec = lease.spec.as_ref();
    spec.and_then(|spec| spec.holder_identity.as_deref())
        .unwrap_or_default()
}

/// How long a lease lasts unless it is renewed. One that does not say so has run out.
pub(crate) fn duration(lease: &Lease) -> Duration {
    let seconds = lease.spec.as_ref().and_then(|spec| spec.lease_duration_seconds);
    Duration::from_secs(seconds.and_then(|s| u64::try_from(s).ok()).unwrap_or(0))
}
