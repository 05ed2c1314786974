//! The names of new pods: fresh, and the same for the same snapshot.

use crate::cache::snapshot::PoolSnapshot;
use crate::model::revision::letter;
use smol_str::{SmolStr, format_smolstr};
use std::collections::HashSet;

/// Fresh pod names `<pool>-<revision>-<suffix>`, derived from the seed of the snapshot.
pub(crate) fn fresh_names(snapshot: &PoolSnapshot) -> impl FnMut(&str) -> SmolStr {
    let pool = &snapshot.pool.key.name;
    let mut taken: HashSet<SmolStr> = snapshot.creating.iter().map(|c| c.name.clone()).collect();
    let mut state = snapshot.seed;
    move |revision| loop {
        let suffix: String = (0..5).map(|_| letter(split_mix(&mut state))).collect();
        let name = format_smolstr!("{pool}-{revision}-{suffix}");
        if !snapshot.has_sandbox(&name) && taken.insert(name.clone()) {
            return name;
        }
    }
}

/// SplitMix64 (Steele, Lea and Flood 2014): a stream of well-mixed numbers from any seed.
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
