//! Checks lifecycle hooks: claims need preNormal handlers, deletions need preDelete handlers removed.

use super::world::{Handlers, Owner, Pod, Step};
use super::{Finding, Scene};

pub fn judge(scene: &Scene, step: &Step, out: &mut Vec<Finding>) {
    let Step::Pod(Some(before), after) = step else {
        return;
    };
    let Some(pool) = scene.world.pools.get(&before.pool) else {
        return;
    };
    let was_the_pools = before.owner == Owner::Pool(pool.name.clone());
    let claimed = after.as_ref().is_some_and(|a| a.claim().is_some());
    if was_the_pools && claimed && !scene.gap && !all_on(&pool.pre_normal, before) {
        let sentence = format!(
            "pod {} was claimed without every preNormal handler: {:?}",
            before.name, pool.pre_normal
        );
        out.push(Finding::new("I3", &[&before.uid], sentence));
    }
    let going = !before.terminating && after.as_ref().is_none_or(|a| a.terminating);
    let by_others = scene.rules.deleted_by_others.contains(&before.uid);
    if was_the_pools && going && !by_others && any_on(&pool.pre_delete, before) {
        let sentence = format!(
            "pod {} was deleted with a preDelete handler on: {:?}",
            before.name, pool.pre_delete
        );
        out.push(Finding::new("preDelete", &[&before.uid], sentence));
    }
}

pub fn all_on((labels, finalizers): &Handlers, pod: &Pod) -> bool {
    labels.iter().all(|(k, v)| pod.labels.get(k) == Some(v))
        && finalizers.iter().all(|f| pod.finalizers.contains(f))
}

fn any_on((labels, finalizers): &Handlers, pod: &Pod) -> bool {
    labels.iter().any(|(k, v)| pod.labels.get(k) == Some(v))
        || finalizers.iter().any(|f| pod.finalizers.contains(f))
}
