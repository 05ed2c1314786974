//! Which answers are stale: older than what a watch has shown. The resource versions that a watch showed tell how far
//! it has got.

use crate::model::stored;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// How far the watch of one kind has got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KindProgress {
    /// The newest resource version that the watch showed, deletions included. The versions of one kind grow (KEP-5504),
    /// and a watch shows them in order.
    version: u64,
    /// Complete lists so far. An object may have come and gone before a list, and the watch never shows it then.
    pub(crate) lists: u64,
}

impl KindProgress {
    /// The watch showed this object.
    pub(crate) fn up_to(&mut self, metadata: &ObjectMeta) {
        self.up_to_version(metadata.resource_version.as_deref().unwrap_or_default());
    }

    /// The watch showed an object of this version.
    pub(crate) fn up_to_version(&mut self, version: &str) {
        self.version = self.version.max(number(version).unwrap_or(0));
    }

    /// The watch restarts with a complete list. Versions are lower after etcd was restored from a backup.
    pub(crate) fn by_list(&mut self) {
        *self = Self {
            version: 0,
            lists: self.lists + 1,
        };
    }

    /// Whether the watch knows more of an object than an answer that shows this version of it, to a request sent when
    /// the watch was at `before`.
    pub(crate) fn knows_better(self, version: &str, before: Self) -> bool {
        self.lists != before.lists || self.covers(version)
    }

    pub(crate) fn covers(self, version: &str) -> bool {
        number(version).is_some_and(|version| version <= self.version)
    }
}

/// How far the watches had got when a request was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WatchProgress {
    pub(crate) pods: KindProgress,
    pub(crate) revisions: KindProgress,
    pub(crate) budgets: KindProgress,
}

/// Whether resource version `a` is newer than `b`. Versions of one resource compare as numbers (KEP-5504); a version
/// that is not a number is never newer.
pub(crate) fn newer(a: &str, b: &str) -> bool {
    matches!((number(a), number(b)), (Some(a), Some(b)) if a > b)
}

/// Whether the object with UID `uid`, known at resource version `version`, is as new as `metadata` shows it.
pub(crate) fn is_known(uid: &str, version: &str, metadata: &ObjectMeta) -> bool {
    let shown = stored::resource_version(metadata);
    uid == stored::uid(metadata) && (version == shown || newer(version, &shown))
}

/// Whether `metadata` shows the object with UID `uid`, known at resource version `version`, at a later version.
pub(crate) fn is_news(uid: &str, version: &str, metadata: &ObjectMeta) -> bool {
    uid == stored::uid(metadata) && newer(&stored::resource_version(metadata), version)
}

/// A resource version as a number.
fn number(version: &str) -> Option<u64> {
    version.parse().ok()
}
