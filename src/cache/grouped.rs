//! Maps of collections that hold no empty collection.

use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Runs `f` on the collection under `key`, and drops the collection when that leaves it empty. Returns what `f` returns,
/// or the default where there is no collection.
pub(crate) fn remove_from<K: std::hash::Hash + Eq, C: IsEmpty, R: Default>(
    map: &mut HashMap<K, C>,
    key: &K,
    f: impl FnOnce(&mut C) -> R,
) -> R {
    let Some(collection) = map.get_mut(key) else {
        return R::default();
    };
    let result = f(collection);
    if collection.is_empty() {
        map.remove(key);
    }
    result
}

/// A collection that may be empty.
pub(crate) trait IsEmpty {
    fn is_empty(&self) -> bool;
}

impl<K, V> IsEmpty for BTreeMap<K, V> {
    fn is_empty(&self) -> bool {
        BTreeMap::is_empty(self)
    }
}

impl<T> IsEmpty for BTreeSet<T> {
    fn is_empty(&self) -> bool {
        BTreeSet::is_empty(self)
    }
}
