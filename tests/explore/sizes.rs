//! What an operator may write about the size of an autoscaled pool.

use crate::laws::{Breach, alone, breach};
use crate::object::Object;
use crate::state::State;
use jiff::{SignedDuration, Timestamp};

/// A size to which claims have raised a pool, and when its status said so.
#[derive(Clone, Copy, Debug)]
pub struct Raised {
    generation: usize,
    at: Timestamp,
}

/// Judges what a write has made of a pool: the size stays between `replicas` and `maxReplicas`, and a size that claims called for
/// does not shrink before half of the stabilization window is over, whoever leads meanwhile. `decided` is when the operator
/// decided on the write. It may have chosen the size before, which the status says, and the need is older still, therefore half.
pub fn written(state: &mut State, before: &Object, pool: &Object, decided: Timestamp) -> Result<(), Breach> {
    let size = |pool: &Object| pool.number("/status/desiredReplicas");
    let seen = |pool: &Object| pool.number("/status/observedGeneration");
    let generation = pool.number("/metadata/generation");
    let (least, most) = (
        pool.number("/spec/replicas"),
        pool.number("/spec/autoscaling/maxReplicas"),
    );
    // What was decided for another spec says nothing, and neither does a spec that is not valid.
    if seen(pool) != generation || most < least {
        return Ok(());
    }
    let (was, is, name) = (size(before), size(pool), pool.name());
    if is < least || is > most {
        return breach("I8", format!("pool {name} keeps {is}, not {least} to {most}"));
    }
    let now = decided;
    if is > was && is > least && seen(before) == generation {
        let chosen: Option<Timestamp> = pool.at("/status/autoscaling/lastScaleTime").parse().ok();
        let at = chosen.map_or(now, |chosen| chosen.min(now));
        let raised = Raised { generation, at };
        state.ghost.raised.insert(pool.uid().to_string(), raised);
    }
    let raised = state.ghost.raised.get(pool.uid());
    let raised = raised.filter(|raised| raised.generation == generation);
    let window = pool.number("/spec/autoscaling/stabilizationWindowSeconds");
    let half = SignedDuration::from_secs(i64::try_from(window / 2).unwrap());
    // Two leaders know of different claims. What a quota has put off was called for long before.
    let judges = alone(state) && state.scene.left.quotas == 0;
    match raised.filter(|raised| judges && is < was && now.duration_since(raised.at) < half) {
        Some(raised) => breach(
            "I8",
            format!(
                "pool {name} shrinks from {was} to {is}, {} after claims called for it",
                now.duration_since(raised.at)
            ),
        ),
        None => Ok(()),
    }
}
