//! Checks which claims no plan has counted yet.

use crate::{NOW, claim, index, pool, snapshot};
use serde_json::json;
use std::collections::{BTreeMap, HashSet};
use warmpool::cache::index::Index;
use warmpool::controllers::pool::decide;
use warmpool::model::Key;
use warmpool::telemetry::metrics::Metrics;

/// Of each waiting claim, by name, whether no plan has counted it.
fn new_claims(index: &Index) -> Vec<bool> {
    let claims = snapshot(index).claims;
    let by_name: BTreeMap<_, _> = claims
        .iter()
        .map(|waiting| (&waiting.claim.key.name, waiting.is_new))
        .collect();
    by_name.into_values().collect()
}

#[test]
fn a_claim_is_new_until_a_plan_has_counted_it_and_never_again() {
    let mut index = index();
    assert_eq!(new_claims(&index), [true]);
    decide(
        &mut index,
        &Key::new("default", "python"),
        NOW,
        0,
        &Metrics::default(),
    );
    assert_eq!(new_claims(&index), [false]);
    index.apply_claim(&claim(11, ""), true, NOW);
    index.apply_claim(&claim(12, ""), false, NOW);
    assert_eq!(new_claims(&index), [false]);
}

#[test]
fn a_claim_of_the_first_list_is_not_new_and_one_that_a_later_list_shows_is() {
    let mut index = Index::default();
    index.apply_pool(&pool("pool", json!({})));
    index.apply_claim(&claim(10, ""), false, NOW);
    index.retain_claims(&HashSet::from([Key::new("default", "run")]));
    assert_eq!(new_claims(&index), [false]);
    let mut late = claim(11, "");
    (late.metadata.name, late.metadata.uid) = (Some("late".into()), Some("late".into()));
    index.apply_claim(&late, false, NOW);
    assert_eq!(new_claims(&index), [true, false]);
}
