//! Counts writes by user in the API server's audit log.

use crate::Outcome;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader, Seek, SeekFrom};
use std::path::PathBuf;

/// The operator's name in the audit log.
pub const OPERATOR: &str = "system:serviceaccount:warmpool-system:warmpool";

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
        let mut file = File::open(&self.path)?;
        file.seek(SeekFrom::Start(self.from))?;
        let mut writes = Writes::default();
        for line in BufReader::new(file).lines() {
            let line = line?;
            if !line.contains(user) {
                continue;
            }
            // The API server may still be writing the last line.
            let Ok(entry) = serde_json::from_str::<Entry>(&line) else {
                continue;
            };
            if entry.user.username == user {
                writes.add(entry);
            }
        }
        Ok(writes)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    verb: String,
    user: User,
    object_ref: Option<ObjectRef>,
    response_status: Option<ResponseStatus>,
}

#[derive(Deserialize)]
struct User {
    username: String,
}

#[derive(Deserialize)]
struct ObjectRef {
    resource: String,
    subresource: Option<String>,
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
        let resource = match entry.object_ref {
            Some(ObjectRef {
                resource,
                subresource: Some(part),
            }) => format!("{resource}/{part}"),
            Some(ObjectRef { resource, .. }) => resource,
            None => "?".into(),
        };
        let code = entry.response_status.and_then(|s| s.code).unwrap_or_default();
        let of_kind = self.0.entry(format!("{} {resource}", entry.verb)).or_default();
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
