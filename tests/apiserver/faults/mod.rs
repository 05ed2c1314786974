//! Decides which requests of an operator fail, and how.
//!
//! The proxy asks here; stories write the rules. Requests of the history watcher and of the stories do not pass the proxy.

mod call;
pub mod proxy;
mod stream;

use crate::lock::lock;
use crate::wait;
use call::Call;
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
    /// Carried out this much later.
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
}

/// The verbs that change something.
pub const WRITES: &[&str] = &["create", "patch", "delete"];

/// The rules of the moment. Cheap to clone.
#[derive(Clone)]
pub struct Faults(Arc<Inner>);

struct Inner {
    rules: Mutex<Vec<Rule>>,
    dice: Mutex<StdRng>,
    struck: Mutex<BTreeMap<(String, String), usize>>,
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
            silences: AtomicU64::new(0),
        }))
    }

    /// From now on these rules hold too.
    pub fn add(&self, rules: impl IntoIterator<Item = Rule>) {
        lock(&self.0.rules).extend(rules);
    }

    /// The rules about one namespace hold no longer; with none, all of them.
    pub fn stop(&self, namespace: Option<&str>) {
        self.replace(namespace, []);
    }

    /// Replaces the rules that [`Faults::stop`] would remove, at once.
    pub fn replace(&self, namespace: Option<&str>, rules: impl IntoIterator<Item = Rule>) {
        let mut all = lock(&self.0.rules);
        all.retain(|rule| namespace.is_some() && rule.namespace.as_deref() != namespace);
        all.extend(rules);
    }

    /// Nothing more comes through the watches that are open now; they stay open.
    pub fn silence(&self) {
        self.0.silences.fetch_add(1, Ordering::SeqCst);
    }

    /// How often each fault has struck the calls of one namespace; an empty one has the calls of all of them.
    pub fn struck(&self, namespace: &str) -> BTreeMap<String, usize> {
        let struck = lock(&self.0.struck);
        let here = struck.iter().filter(|((of, _), _)| of == namespace);
        here.map(|((_, fault), times)| (fault.clone(), *times)).collect()
    }

    /// Complains as long as `fault` has not struck a call of one namespace.
    pub fn has_struck(&self, namespace: &str, fault: Fault) -> Result<(), String> {
        let so_far = self.struck(namespace);
        wait::ensure(so_far.contains_key(&fault.to_string()), || {
            format!("{fault} has not struck: {so_far:?}")
        })
    }

    /// The fault that strikes this call, by the first rule whose dice fall so.
    fn on(&self, call: &Call, about: fn(&Fault) -> bool) -> Option<Fault> {
        let rules = lock(&self.0.rules);
        let here = rules.iter().filter(|r| about(&r.fault) && r.is_about(call));
        let fault = here
            .into_iter()
            .find(|rule| lock(&self.0.dice).random_bool(rule.chance))?
            .fault;
        drop(rules);
        self.count(call, &fault.to_string());
        Some(fault)
    }

    fn count(&self, call: &Call, fault: &str) {
        let key = (call.namespace.clone(), fault.to_string());
        *lock(&self.0.struck).entry(key).or_default() += 1;
    }

    fn silences(&self) -> u64 {
        self.0.silences.load(Ordering::SeqCst)
    }
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
        }
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
