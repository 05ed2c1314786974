//! Decides who leads: client-go's rules over plain data, without client and clock.
//!
//! A lease of another process is judged by when this process saw its record change, never by the times written in it.
//! Clocks need not agree.

use crate::controllers::leader_election::timing::Timing;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use std::time::{Duration, Instant};
use thiserror::Error;

/// The state of one candidate.
#[derive(Debug)]
pub struct Election {
    /// Metadata for the creation or takeover of the lease.
    metadata: ObjectMeta,
    identity: String,
    timing: Timing,
    /// The lease as last read; `None` when it does not exist.
    observed: Option<Observed>,
    /// While leading: when the last confirmed renewal was sent.
    renewed: Option<Instant>,
}

#[derive(Debug)]
struct Observed {
    lease: Lease,
    /// When this record was first read.
    since: Instant,
}

/// The next step of a candidate or leader.
#[derive(Debug, PartialEq)]
pub enum Step {
    /// Write this lease: create it if it has no resource version, else replace that version.
    Write(Box<Lease>),
    /// Another process holds the lease for this long, unless it renews it.
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
    /// Another process holds the lease.
    #[error("{0} holds the lease")]
    Taken(String),
}

impl Election {
    /// A candidate that has read nothing yet. `identity` must be unique among all processes.
    pub fn new(metadata: ObjectMeta, identity: String, timing: Timing) -> Self {
        Self {
            metadata,
            identity,
            timing,
            observed: None,
            renewed: None,
        }
    }

    /// Notes the lease as read at `now`. Only a change of its spec is a renewal.
    pub fn observe(&mut self, lease: Option<Lease>, now: Instant) {
        let before = self.observed.take();
        self.observed = lease.map(|lease| Observed {
            since: before
                .filter(|before| before.lease.spec == lease.spec)
                .map_or(now, |before| before.since),
            lease,
        });
    }

    /// Notes that the API server has stored `lease`, in a request sent at `sent`. The term counts from then: no other
    /// process can have seen the record earlier.
    pub fn confirm(&mut self, lease: Lease, sent: Instant) {
        self.observed = Some(Observed { lease, since: sent });
        self.renewed = Some(sent);
    }

    /// The step at `now`. `wall`, the wall clock, is written into the lease for its readers.
    pub fn next_step(&self, now: Instant, wall: Timestamp) -> Step {
        if self.deadline().is_some_and(|deadline| now >= deadline) {
            return Step::Lost(Lost::Deadline(self.timing.renew_deadline()));
        }
        let Some(Observed { lease, since }) = &self.observed else {
            return Step::Write(Box::new(self.lease(None, wall)));
        };
        let holder = holder(lease);
        if !holder.is_empty() && holder != self.identity {
            if self.renewed.is_some() {
                return Step::Lost(Lost::Taken(holder.to_string()));
            }
            let left = duration(lease).saturating_sub(now.saturating_duration_since(*since));
            if !left.is_zero() {
                return Step::Wait(left);
            }
        }
        Step::Write(Box::new(self.lease(Some(lease), wall)))
    }

    /// While leading: when leadership ends unless a renewal is confirmed before.
    pub fn deadline(&self) -> Option<Instant> {
        Some(self.renewed? + self.timing.renew_deadline())
    }

    /// The holder of the lease as last read; empty when it has no holder.
    pub fn holder(&self) -> &str {
        self.observed
            .as_ref()
            .map_or("", |observed| holder(&observed.lease))
    }

    /// The resource version of the lease as last read, if it has no holder.
    pub fn released_version(&self) -> Option<&str> {
        let lease = &self.observed.as_ref()?.lease;
        let version = lease.metadata.resource_version.as_deref();
        version.filter(|_| holder(lease).is_empty())
    }

    /// The lease as released, if this process held it when it was last read.
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

    /// The lease with this process as its holder, after `before`. Foreign labels and annotations stay.
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
            let metadata = &mut lease.metadata;
            metadata
                .labels
                .get_or_insert_default()
                .extend(labels.clone().unwrap_or_default());
            metadata
                .annotations
                .get_or_insert_default()
                .extend(annotations.clone().unwrap_or_default());
        }
        spec.lease_duration_seconds = Some(self.timing.lease_seconds());
        spec.renew_time = Some(MicroTime(wall));
        lease
    }
}

/// The holder of a lease; empty when it has none.
pub(crate) fn holder(lease: &Lease) -> &str {
    let spec = lease.spec.as_ref();
    spec.and_then(|spec| spec.holder_identity.as_deref())
        .unwrap_or_default()
}

/// How long a lease lasts unless it is renewed. A lease without a duration has expired.
pub(crate) fn duration(lease: &Lease) -> Duration {
    let seconds = lease.spec.as_ref().and_then(|spec| spec.lease_duration_seconds);
    Duration::from_secs(seconds.and_then(|s| u64::try_from(s).ok()).unwrap_or(0))
}
