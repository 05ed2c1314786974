//! Decides which requests of an operator fail, and how.
//!
//! The proxy asks here; stories write the rules. Requests of the history watcher and of the stories do not pass the proxy.

mod call;
pub mod proxy;
mod status;
mod stream;

use crate::check::requests::Request;
use crate::lock::lock;
use crate::wait;
use call::Call;
use jiff::Timestamp;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// One kind of fault.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    /// Not carried out, and answered with this code. With 429 comes the wish to be asked again in a second.
    Refused(u16),
    /// Carried out, and answered with this code.
    AnsweredWith(u16),
    /// Executed, and the connection closed without a reply.
    ReplyLost,
    /// Not carried out, and the connection closed.
    Dropped,
    /// Never carried out nor answered; the connection stays open.
    Hangs,
    /// Carried out and never answered; the connection stays open.
    ReplyHangs,
    /// Carried out this much later, whether or not its sender still waits for the answer.
    Late(Duration),
    /// A watch that delivers an event, and the events after it, this much later.
    EventLate(Duration),
    /// A watch whose connection breaks at an event.
    Broken,
    /// A watch that is answered with 410: what it asks for is no longer there.
    Gone,
    /// A watch that delivers an error 410 instead of an event, and ends.
    GoneInside,
    /// A watch without bookmarks.
    NoBookmarks,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(code) => write!(f, "{code}"),
            Self::AnsweredWith(code) => write!(f, "{code} after commit"),
            Self::ReplyLost => write!(f, "reply lost after commit"),
            Self::Dropped => write!(f, "request lost"),
            Self::Hangs => write!(f, "request hangs"),
            Self::ReplyHangs => write!(f, "reply hangs after commit"),
            Self::Late(by) => write!(f, "{by:?} late"),
            Self::EventLate(by) => write!(f, "event {by:?} late"),
            Self::Broken => write!(f, "watch reset"),
            Self::Gone => write!(f, "watch refused with 410"),
            Self::GoneInside => write!(f, "410 inside a watch"),
            Self::NoBookmarks => write!(f, "no bookmarks"),
        }
    }
}

/// Where a fault strikes, and how often.
#[derive(Clone, Debug)]
pub struct Rule {
    pub fault: Fault,
    /// Of each call, or of each event of a watch, that the rule is about: from 0 to 1.
    pub chance: f64,
    /// Only calls in this namespace. Empty: calls about the whole cluster.
    pub namespace: Option<String>,
    /// Only these verbs, as the audit log has them.
    pub verbs: &'static [&'static str],
    /// Only this resource, with its subresource as in `sandboxclaims/status`; empty: all.
    pub resource: &'static str,
    /// The first call of each of these kinds meets it, whatever the chance: `patch pods`.
    pub first: &'static [&'static str],
}

/// The writes of a claim's life: its sandbox is created, bound and published, and a rollout deletes others.
pub const WRITES_THAT_MATTER: &[&str] = &[
    "create pods",
    "patch pods",
    "update sandboxclaims/status",
    "delete pods",
];

/// The verbs that change something.
pub const WRITES: &[&str] = &["create", "patch", "update", "delete"];

/// The rules of the moment. Cheap to clone.
#[derive(Clone)]
pub struct Faults(Arc<Inner>);

/// What is counted of an event that a silent watch did not show.
const SILENCED: &str = "event in a silent watch";

/// A kind of call that a fault has struck: the namespace, the fault, the verb and the resource.
type Target = (String, String, String);

struct Inner {
    rules: Mutex<Vec<Rule>>,
    dice: Mutex<StdRng>,
    struck: Mutex<BTreeMap<Target, usize>>,
    /// The writes that have arrived, each with its namespace.
    writes: Mutex<Vec<(String, Request)>>,
    /// Watches opened before this count of [`Faults::silence`] have gone silent.
    silences: AtomicU64,
}

impl Faults {
    /// No faults yet; the dice are the same for the same seed.
    pub fn new(seed: u64) -> Self {
        Self(Arc::new(Inner {
            rules: Mutex::default(),
            dice: Mutex::new(StdRng::seed_from_u64(seed)),
            struck: Mutex::default(),
            writes: Mutex::default(),
            silences: AtomicU64::new(0),
        }))
    }

    /// From now on these rules hold too. What their faults have struck before counts no longer.
    pub fn add(&self, rules: impl IntoIterator<Item = Rule>) {
        let rules: Vec<Rule> = rules.into_iter().collect();
        self.forget(&rules);
        lock(&self.0.rules).extend(rules);
    }

    /// The rules about one namespace hold no longer; with none, all of them.
    pub fn stop(&self, namespace: Option<&str>) {
        self.replace(namespace, []);
    }

    /// Replaces the rules that [`Faults::stop`] would remove, at once. As for [`Faults::add`], the counts of the new ones
    /// begin anew.
    pub fn replace(&self, namespace: Option<&str>, rules: impl IntoIterator<Item = Rule>) {
        let rules: Vec<Rule> = rules.into_iter().collect();
        self.forget(&rules);
        let mut all = lock(&self.0.rules);
        all.retain(|rule| namespace.is_some() && rule.namespace.as_deref() != namespace);
        all.extend(rules);
    }

    /// Forgets what faults as those of `rules` have struck, in the namespaces that the rules are about.
    fn forget(&self, rules: &[Rule]) {
        let begins_anew = |namespace: &String, fault: &String| {
            rules.iter().any(|rule| {
                rule.namespace.as_ref().is_none_or(|of| of == namespace) && rule.fault.to_string() == *fault
            })
        };
        lock(&self.0.struck).retain(|(namespace, fault, _), _| !begins_anew(namespace, fault));
    }

    /// Nothing more comes through the watches that are open now; they stay open.
    pub fn silence(&self) {
        lock(&self.0.struck).retain(|(_, fault, _), _| fault != SILENCED);
        self.0.silences.fetch_add(1, Ordering::SeqCst);
    }

    /// Complains as long as no event was lost in a watch since [`Faults::silence`].
    pub fn has_silenced(&self) -> Result<(), String> {
        let so_far = self.struck("");
        wait::ensure(so_far.contains_key(SILENCED), || {
            format!("no event came in a silent watch: {so_far:?}")
        })
    }

    /// How often each fault has struck the calls of one namespace; an empty one has the calls of all of them.
    pub fn struck(&self, namespace: &str) -> BTreeMap<String, usize> {
        let struck = lock(&self.0.struck);
        let mut times = BTreeMap::new();
        for ((_, fault, _), more) in struck.iter().filter(|((of, _, _), _)| of == namespace) {
            *times.entry(fault.clone()).or_default() += more;
        }
        times
    }

    /// Complains as long as `fault` has not struck a call of one namespace.
    pub fn has_struck(&self, namespace: &str, fault: Fault) -> Result<(), String> {
        let so_far = self.struck(namespace);
        wait::ensure(so_far.contains_key(&fault.to_string()), || {
            format!("{fault} has not struck: {so_far:?}")
        })
    }

    /// Complains as long as `fault` has not struck each of these kinds of calls of one namespace: `patch pods`.
    pub fn has_struck_each(&self, namespace: &str, fault: Fault, calls: &[&str]) -> Result<(), String> {
        let struck = lock(&self.0.struck);
        let key = |call: &str| (namespace.to_string(), fault.to_string(), call.to_string());
        let spared = calls.iter().find(|call| !struck.contains_key(&key(call)));
        wait::ensure(spared.is_none(), || {
            format!("{fault} has not struck {spared:?}; so far {struck:?}")
        })
    }

    /// The writes of one namespace that have arrived, whatever became of them.
    pub fn writes(&self, namespace: &str) -> Vec<Request> {
        let writes = lock(&self.0.writes);
        let here = writes.iter().filter(|(of, _)| of == namespace);
        here.map(|(_, request)| request.clone()).collect()
    }

    /// Notes a write that has arrived. Its number is for [`Faults::answered`].
    fn arrived(&self, call: &Call) -> Option<usize> {
        if !WRITES.contains(&call.verb) {
            return None;
        }
        let request = Request {
            at: Timestamp::now(),
            answered: Timestamp::MAX,
            verb: call.verb.into(),
            resource: call.resource.clone(),
            name: call.name.clone(),
            code: 0,
        };
        let mut writes = lock(&self.0.writes);
        writes.push((call.namespace.clone(), request));
        Some(writes.len() - 1)
    }

    /// The write with this number was answered, or would have been.
    fn answered(&self, write: Option<usize>, code: u16) {
        let mut writes = lock(&self.0.writes);
        if let Some((_, request)) = write.and_then(|number| writes.get_mut(number)) {
            (request.code, request.answered) = (code, Timestamp::now());
        }
    }

    /// The fault that strikes this call, by the first rule that strikes for sure or whose dice fall so.
    fn on(&self, call: &Call, about: fn(&Fault) -> bool) -> Option<Fault> {
        let rules = lock(&self.0.rules);
        let here = rules.iter().filter(|r| about(&r.fault) && r.is_about(call));
        let fault = here
            .into_iter()
            .find(|rule| self.must_strike(rule, call) || lock(&self.0.dice).random_bool(rule.chance))?
            .fault;
        drop(rules);
        self.count(call, &fault.to_string());
        Some(fault)
    }

    fn must_strike(&self, rule: &Rule, call: &Call) -> bool {
        let target = target(call, &rule.fault.to_string());
        rule.first.contains(&target.2.as_str()) && !lock(&self.0.struck).contains_key(&target)
    }

    fn count(&self, call: &Call, fault: &str) {
        let key = target(call, fault);
        *lock(&self.0.struck).entry(key).or_default() += 1;
    }

    fn silences(&self) -> u64 {
        self.0.silences.load(Ordering::SeqCst)
    }
}

fn target(call: &Call, fault: &str) -> Target {
    let kind = format!("{} {}", call.verb, call.resource);
    (call.namespace.clone(), fault.to_string(), kind)
}

impl Rule {
    /// A fault of calls with these verbs.
    pub fn of(fault: Fault, chance: f64, verbs: &'static [&'static str]) -> Self {
        Self {
            fault,
            chance,
            namespace: None,
            verbs,
            resource: "",
            first: &[],
        }
    }

    /// The same, and the first call of each of these kinds meets it for sure: `patch pods`.
    pub fn and_first(self, first: &'static [&'static str]) -> Self {
        Self { first, ..self }
    }

    /// The same in one namespace only.
    pub fn within(self, namespace: &str) -> Self {
        Self {
            namespace: Some(namespace.into()),
            ..self
        }
    }

    /// The same for one resource only.
    pub fn on(self, resource: &'static str) -> Self {
        Self { resource, ..self }
    }

    fn is_about(&self, call: &Call) -> bool {
        self.namespace.as_ref().is_none_or(|n| *n == call.namespace)
            && self.verbs.contains(&call.verb)
            && (self.resource.is_empty() || self.resource == call.resource)
    }
}

impl Fault {
    /// It strikes at an event of a watch.
    fn is_of_an_event(&self) -> bool {
        matches!(self, Self::EventLate(_) | Self::Broken | Self::GoneInside)
    }

    /// It strikes a call as a whole.
    fn is_of_a_call(&self) -> bool {
        !self.is_of_an_event() && *self != Self::NoBookmarks
    }
}
