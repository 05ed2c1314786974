//! Builds histories by hand.

use crate::check::event::{Change, Event, Kind};
use crate::check::processor_waits::Sample;
use crate::check::requests::{Request, Requests};
use crate::check::{Rules, Verdict, judge};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

/// A history under construction. Each call adds a write, 10 ms after the last one.
#[derive(Default)]
pub struct History {
    pub events: Vec<Event>,
    pub ms: i64,
}

impl History {
    /// A pool in the middle of a rollout from revision `old` to revision `new`.
    pub fn rolling(replicas: usize) -> Self {
        let pool = json!({
            "metadata": {"name": "p", "uid": "pool-p"},
            "spec": {"replicas": replicas},
            "status": {"currentRevision": "old", "updateRevision": "new"},
        });
        Self::default().write(Change::Modified, Kind::Pool, pool)
    }

    pub fn write(mut self, change: Change, kind: Kind, mut object: Value) -> Self {
        self.ms += 10;
        object["metadata"]["resourceVersion"] = json!((self.events.len() + 1).to_string());
        let at = Timestamp::UNIX_EPOCH + SignedDuration::from_millis(self.ms);
        self.events.push(Event::new(at, kind, change, object));
        self
    }

    pub fn pool(self, replicas: i64, spec: Value) -> Self {
        self.pool_that_says(replicas, spec, Value::Null)
    }

    pub fn pool_that_says(self, replicas: i64, spec: Value, status: Value) -> Self {
        let mut object = json!({"metadata": {"name": "p", "uid": "pool-p"}, "spec": spec, "status": status});
        object["spec"]["replicas"] = json!(replicas);
        // A test that sets no budget gets maxUnavailable 1.
        if object["spec"]["updateStrategy"]["maxUnavailable"].is_null() {
            object["spec"]["updateStrategy"]["maxUnavailable"] = json!(1);
        }
        self.write(Change::Modified, Kind::Pool, object)
    }

    pub fn claim(self, name: &str, status: Value) -> Self {
        self.write(Change::Modified, Kind::Claim, claim(name, 0, status))
    }

    pub fn new_claim(self, name: &str, priority: i64) -> Self {
        self.write(Change::Added, Kind::Claim, claim(name, priority, json!({})))
    }

    pub fn no_claim(self, name: &str) -> Self {
        self.write(Change::Deleted, Kind::Claim, claim(name, 0, json!({})))
    }

    pub fn bound(self, claim: &str, pod: &str) -> Self {
        self.claim(
            claim,
            json!({"phase": "Bound", "sandboxes": [{"name": pod, "uid": format!("uid-{pod}")}]}),
        )
    }

    pub fn pod(self, pod: &Pod) -> Self {
        self.write(Change::Modified, Kind::Pod, pod.object())
    }

    pub fn no_pod(self, pod: &Pod) -> Self {
        self.write(Change::Deleted, Kind::Pod, pod.object())
    }

    /// Adds `count` available sandboxes: w1, w2, ...
    pub fn warm(mut self, count: usize) -> Self {
        for n in 1..=count {
            self = self.pod(&Pod::warm(&format!("w{n}")));
        }
        self
    }

    pub fn later(mut self, ms: i64) -> Self {
        self.ms += ms;
        self
    }

    pub fn judged(&self) -> Verdict {
        self.judged_by(&Rules::default())
    }

    pub fn judged_by(&self, rules: &Rules) -> Verdict {
        judge(&self.events, rules)
    }

    #[track_caller]
    pub fn is_innocent(&self) {
        let verdict = self.judged();
        assert!(verdict.accusations.is_empty(), "accused: {}", text(&verdict));
    }

    /// Asserts that the checker reports `rule` and no other, with `words` in its text.
    #[track_caller]
    pub fn is_guilty(&self, rule: &str, words: &str) {
        let verdict = self.judged();
        assert!(!verdict.accusations.is_empty(), "no accusation");
        assert!(
            verdict.accusations.iter().all(|a| a.rule == rule),
            "{}",
            text(&verdict)
        );
        assert!(text(&verdict).contains(words), "{}", text(&verdict));
    }
}

/// So many milliseconds after the beginning of every history.
pub fn moment(ms: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_millis(ms)
}

/// A request about a pod that arrived at that moment.
pub fn request(verb: &str, pod: &str, ms: i64, code: u16) -> Request {
    Request {
        at: moment(ms),
        answered: moment(ms),
        verb: verb.into(),
        resource: "pods".into(),
        name: pod.into(),
        code,
    }
}

pub fn requests(all: impl IntoIterator<Item = Request>) -> Requests {
    Requests::new(all)
}

/// Rules by which operator and API server waited for a processor: from, to, and for how long between, in milliseconds.
pub fn waiting_for_a_processor(samples: &[(i64, i64, i64)]) -> Rules {
    let mut rules = Rules::default();
    for (from, to, waited) in samples {
        rules.processor_waits.add(Sample {
            from: moment(*from),
            to: moment(*to),
            waited: SignedDuration::from_millis(*waited),
            ran: SignedDuration::ZERO,
        });
    }
    rules
}

pub fn text(verdict: &Verdict) -> String {
    verdict.accusations.iter().map(ToString::to_string).collect()
}

/// A claim with `status`. With an empty `status` the claim waits and its condition has a reason.
pub fn claim(name: &str, priority: i64, status: Value) -> Value {
    let status = if status == json!({}) {
        waiting("NoneAvailable", "none is available")
    } else {
        status
    };
    json!({
        "metadata": {"name": name, "uid": format!("uid-{name}")},
        "spec": {"poolRef": {"name": "p"}, "priority": priority},
        "status": status,
    })
}

/// The status of a waiting claim.
pub fn waiting(reason: &str, message: &str) -> Value {
    let bound = json!({"type": "Bound", "status": "False", "reason": reason, "message": message});
    json!({"phase": "Pending", "conditions": [bound]})
}

#[derive(Clone)]
pub struct Pod {
    pub name: String,
    pub claim: Option<String>,
    pub ready: bool,
    pub phase: &'static str,
    pub terminating: bool,
    pub node: &'static str,
}

impl Pod {
    pub fn warm(name: &str) -> Self {
        Self {
            name: name.into(),
            claim: None,
            ready: true,
            phase: "Running",
            terminating: false,
            node: "",
        }
    }

    pub fn pending(name: &str) -> Self {
        Self {
            ready: false,
            phase: "Pending",
            ..Self::warm(name)
        }
    }

    pub fn on(&self, node: &'static str) -> Self {
        Self { node, ..self.clone() }
    }

    pub fn held_by(&self, claim: &str) -> Self {
        Self {
            claim: Some(claim.into()),
            ..self.clone()
        }
    }

    pub fn unready(&self) -> Self {
        Self {
            ready: false,
            ..self.clone()
        }
    }

    pub fn terminating(&self) -> Self {
        Self {
            terminating: true,
            ..self.clone()
        }
    }

    pub fn object(&self) -> Value {
        let mut labels = json!({"warmpool.dev/pool": "p", "warmpool.dev/state": "warm"});
        let mut owner = json!({"kind": "Pool", "name": "p", "uid": "pool-p", "controller": true});
        if let Some(claim) = &self.claim {
            labels["warmpool.dev/state"] = json!("claimed");
            labels["warmpool.dev/claim-uid"] = json!(format!("uid-{claim}"));
            owner = json!({"kind": "SandboxClaim", "name": claim, "uid": format!("uid-{claim}"), "controller": true});
        }
        let mut metadata = json!({
            "name": self.name, "uid": format!("uid-{}", self.name), "labels": labels, "ownerReferences": [owner],
        });
        if self.terminating {
            metadata["deletionTimestamp"] = json!("1970-01-01T00:00:00Z");
        }
        let ready = if self.ready { "True" } else { "False" };
        let since = "1970-01-01T00:00:00Z";
        json!({
            "metadata": metadata,
            "spec": {"nodeName": self.node},
            "status": {"phase": self.phase, "conditions": [{"type": "Ready", "status": ready, "lastTransitionTime": since}]},
        })
    }
}

/// The pod with the label of `revision`.
pub fn of_revision(revision: &str, pod: &Pod) -> Value {
    let mut object = pod.object();
    object["metadata"]["labels"]["warmpool.dev/revision"] = json!(revision);
    object
}

/// A claim that accepts only the update revision.
pub fn latest_claim(name: &str) -> Value {
    let mut object = claim(name, 0, json!({}));
    object["spec"]["revisionPolicy"] = json!("Latest");
    object
}

/// A pool of one whose sandbox w1 is bound to claim a, and published.
pub fn bound_once() -> History {
    let w1 = Pod::warm("w1");
    History::default()
        .pool(1, json!({}))
        .pod(&w1)
        .new_claim("a", 0)
        .pod(&w1.held_by("a"))
        .bound("a", "w1")
}
