//! Watches each kind once. An event changes the index first, and only then requests reconciles.

use crate::api::labels;
use crate::cache::index::Index;
use crate::cache::reconcile_request::{ReconcileRequest, ReconcileSender};
use crate::cache::synced_cache::SharedCache;
use crate::client::error_chain::chain;
use crate::client::error_log;
use crate::client::watch_pauses::{LONGEST_PAUSE, Pauses, paced};
use crate::model::Key;
use crate::model::sandbox::Sandbox;
use crate::model::stored::eviction_request::StoredEvictionRequest;
use crate::model::stored::{
    self, StoredClaim, StoredDisruptionBudget, StoredNode, StoredPod, StoredPodTemplate, StoredPool,
    StoredRevision,
};
use futures::StreamExt;
use jiff::Timestamp;
use k8s_openapi::NamespaceResourceScope;
use kube::runtime::WatchStreamExt;
use kube::runtime::reflector::store::Writer;
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use std::collections::HashSet;
use std::fmt::Debug;
use std::hash::Hash;
use std::time::Duration;

/// How long one watch lasts, in seconds. The next one continues where it ended, at the cost of one request. A
/// connection that is silent for longer is dead.
const WATCH_SECONDS: u32 = 20;

/// Longest silence on a connection before it is given up: a little longer than a watch without any event. It bounds how
/// long a claim waits when a watch dies unnoticed (client-go pings after 30 s and waits 15 s).
pub const SILENCE: Duration = Duration::from_secs(WATCH_SECONDS as u64 + 4);

/// Pause before a list that the operator has no right to is tried again: only a person can grant the right.
const DENIED_PAUSE: Duration = Duration::from_secs(60);

/// Objects in one page of a list. A tenant may make each as large as etcd accepts (1.5 MiB), and a page is in memory
/// several times while it is decoded. Larger pages save nothing that can be measured; see docs/performance.md.
const PAGE: u32 = 50;

/// What the watches read, and where they report.
#[derive(Clone)]
pub struct WatchContext {
    /// The client that they read through.
    pub client: Client,
    /// The only namespace that is watched; `None`: all.
    pub namespace: Option<String>,
    /// The cache that they keep up to date.
    pub shared: SharedCache,
    /// The controllers that reconcile what changes.
    pub to_reconcile: ReconcileSender,
}

/// A kind whose objects the index keeps.
pub trait Indexed: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static {
    /// Nothing is planned before the first list of the kind.
    const IS_REQUIRED: bool = true;
    /// The API server may stop serving the kind, which ends its watch.
    const MAY_BE_ABSENT: bool = false;
    /// A claimant waits for what follows from a change of an object.
    const IS_URGENT: bool = false;

    /// The objects of `namespace`, or of all namespaces for `None`.
    fn api(client: Client, namespace: Option<&str>) -> Api<Self>;
    /// Label selector of the watched objects; `None`: all.
    fn selector() -> Option<&'static str> {
        None
    }
    /// Stores an object; `live`: the watch showed it, and not a list.
    fn apply(&self, index: &mut Index, live: bool) -> Vec<ReconcileRequest>;
    /// Removes a deleted object.
    fn delete(&self, index: &mut Index) -> Vec<ReconcileRequest>;
    /// Removes objects that are missing from a complete list.
    fn retain(index: &mut Index, listed: &HashSet<Key>);
    /// Notes that the operator may not read objects of this kind; `None` for a kind without which it cannot work.
    /// Returns whether that is new.
    fn deny(_index: &mut Index) -> Option<bool> {
        None
    }
    /// Notes that the watch of the kind fails.
    fn interrupted(_index: &mut Index) {}
    /// What is kept of the object until its list is complete.
    fn listed(self) -> Listed<Self> {
        Listed::Object(Box::new(self))
    }
}

/// An object of a list that is not complete yet.
pub enum Listed<K> {
    /// The whole object.
    Object(Box<K>),
    /// What the index keeps of a pod: a fifth of the object. Whole objects would raise the memory of the process for
    /// good.
    Sandbox(Box<Sandbox>),
}

impl<K: Indexed> Listed<K> {
    fn key(&self) -> Key {
        match self {
            Self::Object(object) => stored::key(object.meta()),
            Self::Sandbox(sandbox) => sandbox.key.clone(),
        }
    }

    /// The older the smaller.
    fn age(&self) -> (Timestamp, u64) {
        let (created, version) = match self {
            Self::Object(object) => (
                stored::created(object.meta()),
                stored::resource_version(object.meta()),
            ),
            Self::Sandbox(sandbox) => (sandbox.created, sandbox.resource_version.clone()),
        };
        (created, version.parse().unwrap_or(u64::MAX))
    }

    fn apply(self, index: &mut Index) {
        match self {
            Self::Object(object) => _ = object.apply(index, false),
            Self::Sandbox(sandbox) => index.apply_sandbox(*sandbox),
        }
    }
}

/// The objects of `namespace`, or of all namespaces for `None`.
fn namespaced<K>(client: Client, namespace: Option<&str>) -> Api<K>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
{
    match namespace {
        Some(namespace) => Api::namespaced(client, namespace),
        None => Api::all(client),
    }
}

impl Indexed for StoredPool {
    fn api(client: Client, namespace: Option<&str>) -> Api<Self> {
        namespaced(client, namespace)
    }
    fn apply(&self, index: &mut Index, live: bool) -> Vec<ReconcileRequest> {
        if live && index.knows_pool(self) {
            return Vec::new();
        }
        index.apply_pool(self)
    }
    fn delete(&self, index: &mut Index) -> Vec<ReconcileRequest> {
        index.delete_pool(self)
    }
    fn retain(index: &mut Index, listed: &HashSet<Key>) {
        index.retain_pools(listed);
    }
}

impl Indexed for StoredClaim {
    const IS_URGENT: bool = true;

    fn api(client: Client, namespace: Option<&str>) -> Api<Self> {
        namespaced(client, namespace)
    }
    fn apply(&self, index: &mut Index, live: bool) -> Vec<ReconcileRequest> {
        if live && index.knows_claim(self) {
            return Vec::new();
        }
        index.apply_claim(self, live, Timestamp::now())
    }
    fn delete(&self, index: &mut Index) -> Vec<ReconcileRequest> {
        index.delete_claim(self)
    }
    fn retain(index: &mut Index, listed: &HashSet<Key>) {
        index.retain_claims(listed);
    }
}

impl Indexed for StoredPod {
    fn api(client: Client, namespace: Option<&str>) -> Api<Self> {
        namespaced(client, namespace)
    }
    fn selector() -> Option<&'static str> {
        Some(labels::POOL)
    }
    fn apply(&self, index: &mut Index, _live: bool) -> Vec<ReconcileRequest> {
        index.apply_pod(self)
    }
    fn delete(&self, index: &mut Index) -> Vec<ReconcileRequest> {
        index.delete_pod(self)
    }
    fn retain(index: &mut Index, listed: &HashSet<Key>) {
        index.retain_pods(listed);
    }
    fn listed(self) -> Listed<Self> {
        match Sandbox::read(&self) {
            Some(sandbox) => Listed::Sandbox(Box::new(sandbox)),
            None => Listed::Object(Box::new(self)),
        }
    }
}

impl Indexed for StoredRevision {
    fn api(client: Client, namespace: Option<&str>) -> Api<Self> {
        namespaced(client, namespace)
    }
    fn selector() -> Option<&'static str> {
        Some(labels::POOL)
    }
    fn apply(&self, index: &mut Index, _live: bool) -> Vec<ReconcileRequest> {
        index.apply_revision(self)
    }
    fn delete(&self, index: &mut Index) -> Vec<ReconcileRequest> {
        index.delete_revision(self)
    }
    fn retain(index: &mut Index, listed: &HashSet<Key>) {
        index.retain_revisions(listed);
    }
}

impl Indexed for StoredPodTemplate {
    fn api(client: Client, namespace: Option<&str>) -> Api<Self> {
        namespaced(client, namespace)
    }
    fn apply(&self, index: &mut Index, _live: bool) -> Vec<ReconcileRequest> {
        index.apply_template(self)
    }
    fn delete(&self, index: &mut Index) -> Vec<ReconcileRequest> {
        index.delete_template(self)
    }
    fn retain(index: &mut Index, listed: &HashSet<Key>) {
        index.retain_templates(listed);
    }
}

impl Indexed for StoredNode {
    fn api(client: Client, _namespace: Option<&str>) -> Api<Self> {
        Api::all(client)
    }
    fn apply(&self, index: &mut Index, _live: bool) -> Vec<ReconcileRequest> {
        index.apply_node(self, Timestamp::now())
    }
    fn delete(&self, index: &mut Index) -> Vec<ReconcileRequest> {
        index.delete_node(self)
    }
    fn retain(index: &mut Index, listed: &HashSet<Key>) {
        index.retain_nodes(listed);
    }
    fn interrupted(index: &mut Index) {
        index.nodes_are_interrupted();
    }
    fn deny(index: &mut Index) -> Option<bool> {
        let is_new = index.deny_nodes();
        if is_new {
            tracing::warn!(
                "the operator may not list and watch nodes, so it ignores drains, cordons and taints; to change that, \
                 bind a ClusterRole with these rights to its service account"
            );
        }
        Some(is_new)
    }
}

impl Indexed for StoredDisruptionBudget {
    const IS_REQUIRED: bool = false;

    fn api(client: Client, namespace: Option<&str>) -> Api<Self> {
        namespaced(client, namespace)
    }
    fn apply(&self, index: &mut Index, _live: bool) -> Vec<ReconcileRequest> {
        index.apply_budget(self)
    }
    fn delete(&self, index: &mut Index) -> Vec<ReconcileRequest> {
        index.delete_budget(self)
    }
    fn retain(index: &mut Index, listed: &HashSet<Key>) {
        index.retain_budgets(listed);
    }
    fn deny(index: &mut Index) -> Option<bool> {
        let is_new = index.deny_budgets();
        if is_new {
            tracing::warn!(
                "the operator may not list and watch poddisruptionbudgets, so it creates none; to change that, add the \
                 rule to its role"
            );
        }
        Some(is_new)
    }
}

impl Indexed for StoredEvictionRequest {
    const IS_REQUIRED: bool = false;
    const MAY_BE_ABSENT: bool = true;

    fn api(client: Client, namespace: Option<&str>) -> Api<Self> {
        namespaced(client, namespace)
    }
    fn apply(&self, index: &mut Index, _live: bool) -> Vec<ReconcileRequest> {
        index.apply_eviction_request(self, Timestamp::now())
    }
    fn delete(&self, index: &mut Index) -> Vec<ReconcileRequest> {
        index.delete_eviction_request(&stored::key(&self.metadata))
    }
    fn retain(index: &mut Index, listed: &HashSet<Key>) {
        index.retain_eviction_requests(listed);
    }
    fn deny(index: &mut Index) -> Option<bool> {
        let is_new = index.deny_eviction_requests();
        if is_new {
            tracing::warn!(
                "the operator may not list and watch evictionrequests, so it ignores them; to change that, add the rule \
                 to its role"
            );
        }
        Some(is_new)
    }
}

/// Watches one kind for ever, or as long as the API server serves a kind that may be absent. Each event goes to `reflect` before it requests a reconcile.
pub async fn run<K: Indexed>(context: WatchContext, mut reflect: impl FnMut(&Event<K>)) {
    let resource = format!("{}.{}", K::plural(&()), K::group(&()));
    // The core group has no name.
    let resource = resource.trim_end_matches('.');
    let api = K::api(paced(context.client, resource), context.namespace.as_deref());
    let mut config = watcher::Config::default().timeout(WATCH_SECONDS).page_size(PAGE);
    if let Some(selector) = K::selector() {
        config = config.labels(selector);
    }
    let watch = || {
        let watcher = kube::runtime::watcher(api.clone(), config.clone());
        watcher.backoff(Pauses::default()).boxed()
    };
    let mut events = watch();
    let mut listed: Vec<Listed<K>> = Vec::new();
    let mut complete = false;
    let kind = K::kind(&());
    let reconcile_all = || {
        if context.shared.synced() {
            let all = context.shared.lock().all();
            context.to_reconcile.send(all);
        }
    };
    context.shared.watches.begins(&kind);
    while let Some(event) = events.next().await {
        let event = match event {
            Ok(event) => event,
            Err(error) if K::MAY_BE_ABSENT && error_log::is_not_found(&error) => {
                context.shared.watches.ended(&kind);
                take_over_list::<K>(&mut context.shared.lock(), Vec::new());
                reconcile_all();
                return;
            }
            Err(error) => {
                if let Some(is_new) = denied::<K>(&context.shared, &error) {
                    context.shared.watches.denied(&kind, chain(&error));
                    if !std::mem::replace(&mut complete, true) && K::IS_REQUIRED {
                        context.shared.watch_synced();
                    }
                    // After the count of complete watches: this one may be the last that was waited for.
                    if is_new {
                        reconcile_all();
                    }
                    tokio::time::sleep(DENIED_PAUSE).await;
                    // The watcher would continue where it stopped, and what was known then is forgotten.
                    events = watch();
                    continue;
                }
                context.shared.watches.failed(&kind, chain(&error));
                K::interrupted(&mut context.shared.lock());
                error_log::log_watch_error(resource, &error);
                if error_log::has_expired(&error) {
                    // The watcher would request the same version for ever.
                    tokio::time::sleep(LONGEST_PAUSE).await;
                    events = watch();
                }
                continue;
            }
        };
        reflect(&event);
        match event {
            Event::Init => listed.clear(),
            Event::InitApply(object) => listed.push(object.listed()),
            Event::InitDone => {
                take_over_listed(&mut context.shared.lock(), std::mem::take(&mut listed));
                context.shared.watches.complete(&kind);
                if !std::mem::replace(&mut complete, true) && K::IS_REQUIRED {
                    context.shared.watch_synced();
                }
                // A list shows no deletion and no single change, so everything is reconciled.
                reconcile_all();
            }
            Event::Apply(object) => {
                let touched = object.apply(&mut context.shared.lock(), true);
                if K::IS_URGENT {
                    context.to_reconcile.send_urgent(touched);
                } else {
                    context.to_reconcile.send(touched);
                }
            }
            Event::Delete(object) => {
                let touched = object.delete(&mut context.shared.lock());
                context.to_reconcile.send(touched);
            }
        }
    }
}

/// Notes that the operator may not read the objects of a kind, if the error says so, and returns whether that is new.
/// `None` for another error, and for a kind without which the operator cannot work.
fn denied<K: Indexed>(shared: &SharedCache, error: &watcher::Error) -> Option<bool> {
    if error_log::is_forbidden(error) {
        K::deny(&mut shared.lock())
    } else {
        None
    }
}

/// [`take_over_listed`] of whole objects.
pub fn take_over_list<K: Indexed>(index: &mut Index, objects: Vec<K>) {
    take_over_listed(index, objects.into_iter().map(K::listed).collect());
}

/// Puts a complete list into the index, the oldest objects first.
pub fn take_over_listed<K: Indexed>(index: &mut Index, mut objects: Vec<Listed<K>>) {
    objects.sort_by_cached_key(Listed::age);
    let listed = objects.iter().map(Listed::key).collect();
    K::retain(index, &listed);
    objects.into_iter().for_each(|object| object.apply(index));
}

/// Keeps only the name of each object in a controller's store. The index holds the rest.
pub fn reflect_names<K>(writer: &mut Writer<K>, event: &Event<K>, name: impl Fn(&K) -> K)
where
    K: Resource + Clone + 'static,
    K::DynamicType: Hash + Eq + Clone,
{
    let event = match event {
        Event::Init => Event::Init,
        Event::InitDone => Event::InitDone,
        Event::InitApply(object) => Event::InitApply(name(object)),
        Event::Apply(object) => Event::Apply(name(object)),
        Event::Delete(object) => Event::Delete(name(object)),
    };
    writer.apply_watcher_event(&event);
}
