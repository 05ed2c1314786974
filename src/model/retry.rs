//! What follows when a request has failed: when it is sent again, when a live read decides, and when it is given up.

use crate::model::failure::{Class, Failure};
use jiff::{SignedDuration, Timestamp};

/// Delay before a write that was rejected or met a conflict is planned again when nothing about its object changes.
pub const RETRY_DELAY: SignedDuration = SignedDuration::from_secs(5);
/// Delay before the first retry of a request whose outcome is unknown. Each further one doubles it.
const FIRST_PAUSE: SignedDuration = SignedDuration::from_millis(100);
/// Longest such delay.
const LONGEST_PAUSE: SignedDuration = SignedDuration::from_secs(5);
/// How long a creation is repeated while its outcome is unknown. Afterwards demand may have changed, and a new plan
/// decides.
const DECISION_LIFETIME: SignedDuration = SignedDuration::from_secs(2);
/// How long a binding may fail before the status of its claim says so.
const QUIET: SignedDuration = SignedDuration::from_secs(3);

/// The failed tries of one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tries {
    /// How many.
    pub count: u32,
    /// The answer of a try was lost: the write may have happened, whatever a later try is answered.
    pub lost: bool,
    /// When the first try failed.
    pub since: Timestamp,
    /// When the last try failed.
    pub at: Timestamp,
    /// Why the last try failed.
    pub failure: Failure,
    /// How many live reads failed that were to show whether the write happened.
    pub reads: u32,
}

impl Tries {
    /// The tries after one more, which failed at `now`.
    pub fn after(before: Option<&Self>, failure: Failure, now: Timestamp) -> Self {
        Self {
            count: before.map_or(0, |tries| tries.count).saturating_add(1),
            lost: before.is_some_and(|tries| tries.lost) || failure.class == Class::Unknown,
            since: before.map_or(now, |tries| tries.since),
            at: now,
            failure,
            reads: before.map_or(0, |tries| tries.reads),
        }
    }

    /// A live read failed at `now`. Why the write failed still counts.
    pub fn read_failed(&mut self, now: Timestamp) {
        self.reads = self.reads.saturating_add(1);
        self.count = self.count.saturating_add(1);
        self.at = now;
    }

    /// Forgets when the tries failed, so that the next is due at once: the clock was set back.
    pub fn forget_moments(&mut self) {
        (self.since, self.at) = (Timestamp::UNIX_EPOCH, Timestamp::UNIX_EPOCH);
    }

    /// When the next request is due: 0.1 s after the first failure, doubling up to 5 s, or as the API server asks.
    pub fn next_at(&self) -> Timestamp {
        let pause = match self.failure.class {
            Class::Throttled(pause) => SignedDuration::try_from(pause).unwrap_or(SignedDuration::MAX),
            _ => {
                let doublings = self.count.saturating_sub(1).min(10);
                FIRST_PAUSE.saturating_mul(1 << doublings).min(LONGEST_PAUSE)
            }
        };
        later(self.at, pause)
    }

    /// When an object is written again after a rejection or conflict: after [`RETRY_DELAY`], or later if the API server
    /// asks for that.
    fn delayed(&self) -> Timestamp {
        match self.failure.class {
            Class::Throttled(pause) => {
                let asked = SignedDuration::try_from(pause).unwrap_or(SignedDuration::MAX);
                later(self.at, asked.max(RETRY_DELAY))
            }
            _ => later(self.at, RETRY_DELAY),
        }
    }

    /// The request has failed for too long to keep quiet about it, or will have when it fails once more.
    pub fn keeps_failing(&self) -> bool {
        self.next_at().duration_since(self.since) > QUIET
    }
}

/// The moment `pause` after `at`.
fn later(at: Timestamp, pause: SignedDuration) -> Timestamp {
    at.checked_add(pause).unwrap_or(Timestamp::MAX)
}

/// A write on a pod that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailedWrite {
    /// A binding, of a claim that waits until this moment.
    Bind(Timestamp),
    /// A deletion or a change of the state.
    Change,
    /// A creation that was decided at this moment.
    Create(Timestamp),
    /// A write that met a conflict or was rejected, and that is not sent again.
    Conflicted,
}

/// What follows for a write on a pod that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing before this moment.
    Wait(Timestamp),
    /// The same request is sent again: the same pod for the same claim, or the same name.
    Send,
    /// A live read shows whether the write happened.
    Read,
    /// The write did not happen. Its pod has changed, or the write is rejected: none follows before the watch shows a
    /// change.
    Hold,
    /// The write did not happen, and the next plan decides anew.
    Forget,
    /// The write did not happen, because the API server rejects it.
    Reject,
    /// The write may have happened. The watch shows it, or a live read much later.
    Await,
}

/// What follows at `now` for a write whose tries failed; `missed`: a live read has shown since that it did not happen.
///
/// A write whose answer was lost may have happened, so it is repeated, and nothing else is tried in its place, until an
/// answer or a live read says what became of it.
pub fn next(write: FailedWrite, tries: &Tries, missed: bool, now: Timestamp) -> Next {
    match write {
        FailedWrite::Conflicted => when_due(later(tries.at, RETRY_DELAY), Next::Forget, now),
        FailedWrite::Bind(_) if missed => missed_binding(tries.failure.class),
        FailedWrite::Bind(until) => binding(until, tries, now),
        FailedWrite::Change if missed => Next::Hold,
        FailedWrite::Change => change(tries, now),
        FailedWrite::Create(_) if missed => Next::Reject,
        FailedWrite::Create(decided) => creation(decided, tries, now),
    }
}

fn binding(until: Timestamp, tries: &Tries, now: Timestamp) -> Next {
    let class = tries.failure.class;
    if until <= now {
        // The claim waits no more. One read tells whether it holds the pod.
        return match class {
            Class::Conflict => read_once(tries),
            _ if tries.lost => read_once(tries),
            _ => Next::Forget,
        };
    }
    match class {
        Class::Conflict => read(tries, now),
        Class::NotAdmitted if tries.keeps_failing() && tries.lost => read(tries, now),
        Class::NotAdmitted if tries.keeps_failing() => Next::Reject,
        Class::Unknown | Class::NotAdmitted | Class::Throttled(_) => {
            when_due(tries.next_at().min(until), Next::Send, now)
        }
        _ if tries.lost => read(tries, now),
        _ => Next::Reject,
    }
}

fn missed_binding(class: Class) -> Next {
    match class {
        Class::Conflict => Next::Hold,
        Class::Unknown | Class::NotAdmitted | Class::Throttled(_) => Next::Forget,
        _ => Next::Reject,
    }
}

fn change(tries: &Tries, now: Timestamp) -> Next {
    match tries.failure.class {
        Class::Conflict => read(tries, now),
        Class::Unknown | Class::NotAdmitted | Class::Throttled(_) => {
            when_due(tries.next_at(), Next::Send, now)
        }
        _ if tries.lost => read(tries, now),
        _ => Next::Hold,
    }
}

fn creation(decided: Timestamp, tries: &Tries, now: Timestamp) -> Next {
    let decision_holds = later(decided, DECISION_LIFETIME) > now;
    match tries.failure.class {
        Class::Unknown | Class::NotAdmitted if decision_holds => when_due(tries.next_at(), Next::Send, now),
        // Another pod has the name: a pod of a user or of an earlier try.
        Class::Conflict => read(tries, now),
        // A quota rejects a POST before its name is checked, so a rejection says nothing of an earlier try.
        _ if tries.lost => read(tries, now),
        _ => Next::Reject,
    }
}

fn when_due(due: Timestamp, then: Next, now: Timestamp) -> Next {
    if due <= now { then } else { Next::Wait(due) }
}

/// A live read at once, and after a pause when one has failed.
fn read(tries: &Tries, now: Timestamp) -> Next {
    let due = if tries.reads > 0 {
        tries.next_at()
    } else {
        tries.at
    };
    when_due(due, Next::Read, now)
}

fn read_once(tries: &Tries) -> Next {
    if tries.reads > 0 { Next::Await } else { Next::Read }
}

/// How far a write on an object other than a pod is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The request waits to be sent or is in flight.
    Sent,
    /// The request failed.
    Failed,
    /// The object is being read.
    Reading,
    /// The object was read since.
    Read,
}

/// What a write on an object other than a pod is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A status that follows what is seen. Nobody waits for it, and it decides nothing.
    Report,
    /// The claim ends: Failed, Expired or deleted.
    End,
    /// The claim is published with its sandboxes, and waits for that.
    Publish,
}

/// A write on a claim, or on the status or the revisions of a pool, that is not known to be done. The object has one at
/// a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectWrite {
    /// Resource version of the object that the write was decided on.
    pub version: String,
    /// What it is for.
    pub purpose: Purpose,
    /// How far it is.
    pub stage: Stage,
    /// Its failed tries.
    pub tries: Option<Tries>,
}

/// What an unfinished write means for the next plan of its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextWrite {
    /// A request is under way, and its answer decides.
    Await,
    /// Nothing is written before this moment.
    Wait(Timestamp),
    /// The object has changed unseen: it is read first.
    Read,
    /// The object may be written.
    Write,
}

impl ObjectWrite {
    /// A write on version `version`, to be sent now. It follows the failed tries of `before` for the same purpose.
    pub fn sent(before: Option<&Self>, version: &str, purpose: Purpose) -> Self {
        let before = before.filter(|write| write.purpose == purpose);
        Self {
            version: version.to_string(),
            purpose,
            stage: Stage::Sent,
            tries: before.and_then(|write| write.tries.clone()),
        }
    }

    /// Forgets when the tries failed: the clock was set back.
    pub fn forget_moments(&mut self) {
        self.tries.iter_mut().for_each(Tries::forget_moments);
    }

    /// The request failed at `now`.
    pub fn failed(&mut self, failure: Failure, now: Timestamp) {
        self.tries = Some(Tries::after(self.tries.as_ref(), failure, now));
        self.stage = Stage::Failed;
    }

    /// When a write for `purpose` may follow at `now`, with the object at `version`.
    pub fn next(&self, purpose: Purpose, version: &str, now: Timestamp) -> NextWrite {
        let Some(tries) = &self.tries else {
            return NextWrite::Await;
        };
        let due = match (self.stage, tries.failure.class) {
            (Stage::Sent | Stage::Reading, _) => return NextWrite::Await,
            (Stage::Failed, Class::Conflict) if self.version == version => return NextWrite::Read,
            (Stage::Failed, Class::Conflict) => return NextWrite::Write,
            (Stage::Read, _) if self.version != version => return NextWrite::Write,
            // A report that failed delays nothing that decides.
            _ if self.purpose == Purpose::Report && purpose != Purpose::Report => return NextWrite::Write,
            (Stage::Failed, Class::Unknown | Class::NotAdmitted | Class::Throttled(_))
                if self.purpose == Purpose::Publish =>
            {
                tries.next_at()
            }
            (Stage::Failed | Stage::Read, _) => tries.delayed(),
        };
        if due <= now {
            NextWrite::Write
        } else {
            NextWrite::Wait(due)
        }
    }
}
