//! The hit rate while the process of the arrivals does not change.

use crate::arrivals::{Arrivals, arrivals, poisson};
use crate::operator::Operator;
use crate::rivals::{best_fixed, run};
use serde_json::json;

const WARM_UP: f64 = 10.0;
const HOUR: f64 = 3600.0;

/// After half an hour the pool keeps its hit rate, within a percentage point of that of the best fixed size: the smallest that
/// reaches the hit rate with the same claims. The pool is not much larger than that.
fn keeps_the_hit_rate(name: &str, target: &str, share: f64, arrivals: &Arrivals, end: f64) {
    let from = HOUR / 2.0;
    let mut operator = Operator::new(2, json!({"maxReplicas": 2000, "targetHitRate": target}), WARM_UP);
    operator.run(arrivals, from, end);
    let mut best = best_fixed(arrivals, WARM_UP, from, share);
    let of_best = run(&mut best, arrivals, WARM_UP, from, end);
    let (hit_rate, size) = (operator.figures.hit_rate(), operator.figures.size());
    println!(
        "{name} {target}: hit rate {:.2}%, size {size:.1}, idle {:.1}; best fixed {}: {:.2}%, idle {:.1}; {} status writes, {} claims",
        hit_rate * 100.0,
        operator.figures.idle(),
        best.0,
        of_best.hit_rate() * 100.0,
        of_best.idle(),
        operator.status_writes,
        arrivals.len()
    );
    assert!(hit_rate >= share - 0.01, "{name}: {hit_rate}");
    // Sandboxes are whole, so the best size reaches more than the hit rate, and so does the pool.
    let of_best_size = of_best.hit_rate();
    assert!(
        (hit_rate - of_best_size).abs() <= 0.01,
        "{name}: {hit_rate} for {of_best_size}"
    );
    assert!(
        size <= best.0 as f64 * 1.25 + 2.0,
        "{name}: {size} for {}",
        best.0
    );
}

#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "slow when not optimized; `make unit` runs it optimized"
)]
fn claims_that_come_one_by_one_find_a_sandbox_as_often_as_asked_for() {
    for (in_warm_up, hours) in [(1.0, 5.0), (5.0, 3.0), (20.0, 1.5)] {
        let end = hours * HOUR;
        let claims = poisson(7, end, in_warm_up / WARM_UP);
        let name = format!("Poisson {in_warm_up}");
        for (target, share) in [("99%", 0.99), ("90%", 0.90)] {
            keeps_the_hit_rate(&name, target, share, &claims, end);
        }
    }
}

#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "slow when not optimized; `make unit` runs it optimized"
)]
fn claims_that_come_in_batches_find_a_sandbox_as_often_as_asked_for() {
    // The variance of a count is 2 * batch - 1 times its mean.
    for (dispersion, in_warm_up) in [(5.0, 30.0), (20.0, 52.5)] {
        let (end, rate) = (4.0 * HOUR, in_warm_up / WARM_UP);
        let claims = arrivals(7, end, rate, (dispersion + 1.0) / 2.0, |_| rate);
        keeps_the_hit_rate(
            &format!("batches, dispersion {dispersion}"),
            "99%",
            0.99,
            &claims,
            end,
        );
    }
}
