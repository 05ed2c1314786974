//! Records every change to pods, claims and pools of one namespace.
//!
//! It watches from before the first object until it is stopped, and writes to memory and to a file of JSON lines.

use crate::api::{Api, ApiError, CLAIMS, PODS, POOLS, Resource};
use crate::check::event::{Change, Event, Kind, text};
use crate::lock::lock;
use crate::wait;
use futures::StreamExt;
use jiff::Timestamp;
use kube::core::WatchEvent;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinHandle;

fn resource(kind: Kind) -> Resource {
    match kind {
        Kind::Pool => POOLS,
        Kind::Claim => CLAIMS,
        Kind::Pod => PODS,
    }
}

pub struct Watcher {
    api: Api,
    namespace: String,
    pub path: PathBuf,
    log: Arc<Mutex<Log>>,
    tasks: Vec<JoinHandle<()>>,
}

struct Log {
    events: Vec<Event>,
    file: BufWriter<File>,
    /// The objects that exist, as last seen, by kind and UID.
    known: BTreeMap<(Kind, String), Value>,
}

impl Log {
    fn record(&mut self, kind: Kind, change: Change, gap: bool, mut object: Value) {
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove("managedFields");
        }
        let mut event = Event::new(Timestamp::now(), kind, change, object);
        event.gap = gap;
        let key = (kind, event.uid().to_string());
        match change {
            Change::Deleted => _ = self.known.remove(&key),
            _ => _ = self.known.insert(key, event.object.clone()),
        }
        // A full disk would show as a test that cannot be looked into, not as a wrong verdict.
        _ = writeln!(self.file, "{}", event.to_line());
        self.events.push(event);
    }

    /// Brings what is known up to a new list: the way there was not seen.
    fn catch_up(&mut self, kind: Kind, items: Vec<Value>, rv: &str) {
        let listed: Vec<String> = items
            .iter()
            .map(|i| text(i, "/metadata/uid").to_string())
            .collect();
        let gone: Vec<_> = self
            .known
            .keys()
            .filter(|(k, uid)| *k == kind && !listed.contains(uid))
            .cloned()
            .collect();
        for key in gone {
            if let Some(mut object) = self.known.get(&key).cloned() {
                object["metadata"]["resourceVersion"] = rv.into();
                self.record(kind, Change::Deleted, true, object);
            }
        }
        for item in items {
            let known = self.known.get(&(kind, text(&item, "/metadata/uid").to_string()));
            match known {
                None => self.record(kind, Change::Added, true, item),
                Some(known)
                    if known["metadata"]["resourceVersion"] != item["metadata"]["resourceVersion"] =>
                {
                    self.record(kind, Change::Modified, true, item);
                }
                Some(_) => {}
            }
        }
    }
}

impl Watcher {
    /// Watches from now on. The namespace must not have any of the objects yet.
    pub fn start(api: &Api, namespace: &str, path: &Path) -> Result<Self, String> {
        let file = File::create(path).map_err(|e| format!("{}: {e}", path.display()))?;
        let log = Log {
            events: Vec::new(),
            file: BufWriter::new(file),
            known: BTreeMap::new(),
        };
        let log = Arc::new(Mutex::new(log));
        let mut tasks = Vec::new();
        for kind in Kind::ALL {
            let list = api.runtime().block_on(list(api, kind, namespace))?;
            let rv = text(&list, "/metadata/resourceVersion").to_string();
            tasks.push(
                api.runtime()
                    .spawn(follow(api.clone(), kind, namespace.into(), rv, log.clone())),
            );
        }
        Ok(Self {
            api: api.clone(),
            namespace: namespace.into(),
            path: path.into(),
            log,
            tasks,
        })
    }

    /// What it has seen so far, in the order in which it happened.
    pub fn so_far(&self) -> Vec<Event> {
        let mut events = lock(&self.log).events.clone();
        crate::check::sort(&mut events);
        events
    }

    /// Number of objects of a kind that exist now and match `which`.
    pub fn count(&self, kind: Kind, which: impl Fn(&Value) -> bool) -> usize {
        let log = lock(&self.log);
        let of_kind = log.known.iter().filter(|((k, _), _)| *k == kind);
        of_kind.filter(|(_, object)| which(object)).count()
    }

    /// Stops once it has seen every object, and returns the events in the order in which they happened.
    pub fn finish(self) -> Result<Vec<Event>, String> {
        let caught_up = wait::until("the watcher had seen everything", 30, || {
            Kind::ALL.into_iter().try_for_each(|kind| self.has_seen_all(kind))
        });
        self.tasks.iter().for_each(JoinHandle::abort);
        let mut events = {
            let mut log = lock(&self.log);
            log.file
                .flush()
                .map_err(|e| format!("{}: {e}", self.path.display()))?;
            std::mem::take(&mut log.events)
        };
        caught_up?;
        crate::check::sort(&mut events);
        Ok(events)
    }

    fn has_seen_all(&self, kind: Kind) -> Result<(), String> {
        let version = |o: &Value| {
            (
                text(o, "/metadata/name").to_string(),
                text(o, "/metadata/resourceVersion").to_string(),
            )
        };
        let listed: BTreeMap<_, _> = self
            .api
            .list(resource(kind), &self.namespace)?
            .iter()
            .map(version)
            .collect();
        let log = lock(&self.log);
        let known: BTreeMap<_, _> = log
            .known
            .iter()
            .filter(|((k, _), _)| *k == kind)
            .map(|(_, o)| version(o))
            .collect();
        wait::ensure(listed == known, || {
            format!("{}: it knows {known:?}, there are {listed:?}", kind.name())
        })
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

async fn list(api: &Api, kind: Kind, namespace: &str) -> Result<Value, ApiError> {
    api.call_async("GET", &resource(kind).path(namespace), None).await
}

/// Why a watch ended.
enum End {
    /// It may go on from where it was.
    Cut,
    /// The server no longer has the events since then.
    Expired,
}

async fn follow(api: Api, kind: Kind, namespace: String, mut rv: String, log: Arc<Mutex<Log>>) {
    loop {
        if let End::Cut = watch(&api, kind, &namespace, &mut rv, &log).await {
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        }
        if let Ok(mut list) = list(&api, kind, &namespace).await {
            rv = text(&list, "/metadata/resourceVersion").to_string();
            let items = list["items"]
                .as_array_mut()
                .map(std::mem::take)
                .unwrap_or_default();
            lock(&log).catch_up(kind, items, &rv);
        }
    }
}

async fn watch(api: &Api, kind: Kind, namespace: &str, rv: &mut String, log: &Mutex<Log>) -> End {
    let query = format!(
        "{}?watch=true&allowWatchBookmarks=true&timeoutSeconds=280&resourceVersion={rv}",
        resource(kind).path(namespace)
    );
    let Ok(mut request) = kube::core::Request::new("/").list(&Default::default()) else {
        return End::Cut;
    };
    let Ok(uri) = query.parse() else { return End::Cut };
    *request.uri_mut() = uri;
    let stream = match api.client().request_events::<Value>(request).await {
        Ok(stream) => stream,
        Err(kube::Error::Api(status)) if status.code == 410 => return End::Expired,
        Err(_) => return End::Cut,
    };
    let mut stream = std::pin::pin!(stream);
    while let Some(Ok(event)) = stream.next().await {
        let (change, object) = match event {
            WatchEvent::Added(object) => (Change::Added, object),
            WatchEvent::Modified(object) => (Change::Modified, object),
            WatchEvent::Deleted(object) => (Change::Deleted, object),
            WatchEvent::Bookmark(bookmark) => {
                *rv = bookmark.metadata.resource_version;
                continue;
            }
            WatchEvent::Error(status) if status.code == 410 => return End::Expired,
            WatchEvent::Error(_) => return End::Cut,
        };
        *rv = text(&object, "/metadata/resourceVersion").to_string();
        lock(log).record(kind, change, false, object);
    }
    End::Cut
}
