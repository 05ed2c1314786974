//! A request that somebody evicts a pod, reduced to which pod it names and whether it stands.

use crate::model::Key;
use crate::model::stored;
use crate::model::stored::eviction_request::StoredEvictionRequest;
use jiff::Timestamp;
use smol_str::SmolStr;

/// The intent of a request that stands. With any other, nothing is evicted.
const EVICTION: &str = "Eviction";

/// An EvictionRequest as decisions need it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvictionRequest {
    /// The pod to evict.
    pub pod: Key,
    /// UID of that pod: the request is not for another pod of the same name.
    pub pod_uid: SmolStr,
    /// Since when the eviction is requested; `None` while it is not, because the request is withdrawn.
    pub since: Option<Timestamp>,
}

impl EvictionRequest {
    /// Decodes a stored request at `now`; `known` is its previous state. `None` for a request that names no pod.
    ///
    /// A request counts from its creation, and from when this process saw it if it was withdrawn before.
    pub fn read(stored: &StoredEvictionRequest, known: Option<&Self>, now: Timestamp) -> Option<Self> {
        let text = |pointer: &str| stored.spec.pointer(pointer).and_then(|value| value.as_str());
        let (name, uid) = (text("/target/pod/name")?, text("/target/pod/uid")?);
        let namespace = stored::key(&stored.metadata).namespace;
        let since = match known {
            Some(known) => known.since.unwrap_or(now),
            None => stored::created(&stored.metadata),
        };
        Some(Self {
            pod: Key::new(namespace, name),
            pod_uid: uid.into(),
            since: (text("/intent") == Some(EVICTION)).then_some(since),
        })
    }
}
