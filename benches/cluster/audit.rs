//! Reads the API server's audit log: writes by user, and when those of a claim were sent.

use crate::Outcome;
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader, Seek, SeekFrom};
use std::path::PathBuf;
use std::time::Duration;

/// The operator's name in the audit log.
pub const OPERATOR: &str = "system:serviceaccount:warmpool-system:warmpool";
/// The name of this benchmark.
pub const LOAD: &str = "load";

pub struct AuditLog {
    path: PathBuf,
    from: u64,
}

impl AuditLog {
    /// Starts counting. Earlier writes are left out.
    pub fn mark(path: PathBuf) -> Outcome<Self> {
        let from = File::open(&path)?.metadata()?.len();
        Ok(Self { path, from })
    }

    /// The writes of `user` since [`AuditLog::mark`].
    pub fn writes_of(&self, user: &str) -> Outcome<Writes> {
        let mut writes = Writes::default();
        self.read(&[user], |entry| writes.add(entry))?;
        Ok(writes)
    }

    /// What `user` took of the time of each claim since [`AuditLog::mark`]. `bound` holds the pod of each claim. Claims that
    /// were POSTed earlier are left out.
    pub fn spans(&self, user: &str, bound: &HashMap<String, String>) -> Outcome<Spans> {
        let (mut posts, mut bindings, mut statuses) = (HashMap::new(), HashMap::new(), HashMap::new());
        self.read(&[user, LOAD], |entry| {
            let of_user = entry.user.username == user;
            let kind = entry.kind();
            let times = (entry.request_received_timestamp, entry.stage_timestamp);
            let name = entry
                .object_ref
                .and_then(|object| object.name)
                .unwrap_or_default();
            // A write that is sent again does not count.
            match kind.as_str() {
                "create sandboxclaims" => _ = posts.entry(name).or_insert(times),
                "patch pods" if of_user => _ = bindings.entry(name).or_insert(times),
                "update sandboxclaims/status" if of_user => _ = statuses.entry(name).or_insert(times),
                _ => {}
            }
        })?;
        let mut spans = Spans::default();
        for (claim, pod) in bound {
            if let (Some((_, posted)), Some((binding, bound)), Some((status, _))) =
                (posts.get(claim), bindings.get(pod), statuses.get(claim))
            {
                spans.to_binding.push(between(*posted, *binding));
                spans.to_status.push(between(*bound, *status));
            }
        }
        spans.to_binding.sort_unstable();
        spans.to_status.sort_unstable();
        Ok(spans)
    }

    /// Calls `each` with every write of `users` since [`AuditLog::mark`].
    fn read(&self, users: &[&str], mut each: impl FnMut(Entry)) -> Outcome<()> {
        let mut file = File::open(&self.path)?;
        file.seek(SeekFrom::Start(self.from))?;
        for line in BufReader::new(file).lines() {
            let line = line?;
            if !users.iter().any(|user| line.contains(user)) {
                continue;
            }
            // The API server may still be writing the last line.
            let Ok(entry) = serde_json::from_str::<Entry>(&line) else {
                continue;
            };
            if users.contains(&entry.user.username.as_str()) {
                each(entry);
            }
        }
        Ok(())
    }
}

/// What the client that serves claims took of their time, sorted. A watch may show an object before the answer to its write
/// is complete; that counts as zero.
#[derive(Default)]
pub struct Spans {
    /// From the answer to the POST of a claim to the request of its binding.
    pub to_binding: Vec<Duration>,
    /// From the answer to the binding to the request of the claim's status.
    pub to_status: Vec<Duration>,
}

fn between(from: Timestamp, to: Timestamp) -> Duration {
    to.duration_since(from).max(SignedDuration::ZERO).unsigned_abs()
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    verb: String,
    user: User,
    object_ref: Option<ObjectRef>,
    response_status: Option<ResponseStatus>,
    request_received_timestamp: Timestamp,
    /// When the answer was complete.
    stage_timestamp: Timestamp,
}

impl Entry {
    /// The verb and the resource, such as `create pods`.
    fn kind(&self) -> String {
        let resource = match &self.object_ref {
            Some(ObjectRef {
                resource,
                subresource: Some(part),
                ..
            }) => format!("{resource}/{part}"),
            Some(ObjectRef { resource, .. }) => resource.clone(),
            None => "?".into(),
        };
        format!("{} {resource}", self.verb)
    }
}

#[derive(Deserialize)]
struct User {
    username: String,
}

#[derive(Deserialize)]
struct ObjectRef {
    resource: String,
    subresource: Option<String>,
    name: Option<String>,
}

#[derive(Deserialize)]
struct ResponseStatus {
    code: Option<u16>,
}

/// Writes by verb and resource, then by response code.
#[derive(Default)]
pub struct Writes(BTreeMap<String, BTreeMap<u16, usize>>);

impl Writes {
    fn add(&mut self, entry: Entry) {
        let of_kind = self.0.entry(entry.kind()).or_default();
        let code = entry.response_status.and_then(|s| s.code).unwrap_or_default();
        *of_kind.entry(code).or_default() += 1;
    }

    pub fn total(&self) -> usize {
        self.0.values().flat_map(BTreeMap::values).sum()
    }

    /// Writes of one kind, such as `create pods`.
    pub fn of(&self, kind: &str) -> usize {
        self.0.get(kind).map_or(0, |codes| codes.values().sum())
    }

    /// Writes that were answered with `code`.
    pub fn answered(&self, code: u16) -> usize {
        self.0.values().filter_map(|of_kind| of_kind.get(&code)).sum()
    }
}

/// Prints writes like `create pods 400, patch pods 400 (2 x 422)`.
impl fmt::Display for Writes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return write!(f, "none");
        }
        for (index, (kind, codes)) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{kind} {}", codes.values().sum::<usize>())?;
            for (code, count) in codes.iter().filter(|(code, _)| !(200..300).contains(*code)) {
                write!(f, " ({count} x {code})")?;
            }
        }
        Ok(())
    }
}
