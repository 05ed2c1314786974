//! What a pool does when the demand changes, and when another operator takes over.

use crate::arrivals::{Arrivals, arrivals, poisson};
use crate::operator::Operator;
use serde_json::json;

const WARM_UP: f64 = 2.0;
const RATE: f64 = 10.0;
const MINUTE: f64 = 60.0;

fn pool() -> Operator {
    let autoscaling = json!({"maxReplicas": 100, "stabilizationWindowSeconds": 60});
    Operator::new(2, autoscaling, WARM_UP)
}

/// Claims from the second minute to the end of the fifth.
fn four_minutes() -> Arrivals {
    let claims = poisson(11, 4.0 * MINUTE, RATE);
    claims.into_iter().map(|at| at + MINUTE).collect()
}

#[test]
fn a_pool_at_its_floor_reaches_the_hit_rate_within_a_minute() {
    let mut operator = pool();
    operator.run(&four_minutes(), 2.0 * MINUTE, 5.0 * MINUTE);
    let hit_rate = operator.figures.hit_rate();
    assert!(hit_rate >= 0.99, "{hit_rate}");
}

#[test]
fn claims_that_stop_let_a_pool_shrink_to_its_floor_after_the_window_and_in_steps() {
    let mut operator = pool();
    let claims = four_minutes();
    operator.run(&claims, 0.0, 5.0 * MINUTE);
    let largest = operator.size();
    assert!(largest >= 25, "{largest}");
    operator.run(&Vec::new(), 0.0, 5.9 * MINUTE);
    assert_eq!(operator.size(), largest, "no step before the window is over");
    let mut steps = vec![largest];
    for second in 354..600 {
        operator.run(&Vec::new(), 0.0, f64::from(second));
        if *steps.last().unwrap() != operator.size() {
            steps.push(operator.size());
        }
    }
    assert_eq!(operator.size(), 2, "{steps:?}");
    assert!(
        steps.windows(2).all(|pair| pair[1] * 4 >= pair[0] * 3 - 3),
        "{steps:?}"
    );
    let writes = operator.status_writes;
    operator.run(&Vec::new(), 0.0, 60.0 * MINUTE);
    assert_eq!(operator.status_writes, writes, "nothing is written at rest");
}

#[test]
fn an_operator_that_takes_over_keeps_the_size_and_the_hit_rate() {
    let claims = four_minutes();
    let (before, after): (Arrivals, Arrivals) = claims.iter().partition(|at| **at < 3.0 * MINUTE);
    let after = after.into_iter().take_while(|at| *at < 3.9 * MINUTE).collect();
    let mut operator = pool();
    operator.run(&before, 2.0 * MINUTE, 3.0 * MINUTE);
    let size = operator.size();
    operator.restart();
    operator.run(&after, 2.0 * MINUTE, 3.9 * MINUTE);
    assert!(operator.size() >= size, "{} after {size}", operator.size());
    let hit_rate = operator.figures.hit_rate();
    assert!(hit_rate >= 0.99, "{hit_rate}");
}

#[test]
fn an_operator_that_takes_over_while_nothing_arrives_does_not_shrink_the_pool_before_the_window_is_over() {
    let mut operator = pool();
    operator.run(&four_minutes(), 0.0, 5.0 * MINUTE);
    let size = operator.size();
    operator.restart();
    operator.run(&Vec::new(), 0.0, 5.9 * MINUTE);
    assert_eq!(operator.size(), size, "I8: the size collapsed");
    operator.run(&Vec::new(), 0.0, 15.0 * MINUTE);
    assert_eq!(operator.size(), 2);
}

#[test]
fn a_tenfold_rate_within_a_minute_is_followed() {
    let (began, over) = (20.0 * MINUTE, 21.0 * MINUTE);
    let rate = |at: f64| 1.0 + 9.0 * ((at - began) / MINUTE).clamp(0.0, 1.0);
    let end = 30.0 * MINUTE;
    let claims = arrivals(13, end, 10.0, 1.0, rate);
    let mut operator = pool();
    operator.run(&claims, over, end);
    let hit_rate = operator.figures.hit_rate();
    assert!(hit_rate >= 0.98, "{hit_rate}");
}

#[test]
fn a_tenth_of_the_rate_leads_to_a_smaller_size_soon_after_the_window() {
    let drop = 20.0 * MINUTE;
    let claims = arrivals(13, 40.0 * MINUTE, RATE, 1.0, |at| {
        if at < drop { RATE } else { RATE / 10.0 }
    });
    let (before, after): (Arrivals, Arrivals) = claims.iter().partition(|at| **at < drop);
    let mut operator = pool();
    operator.run(&before, 0.0, drop);
    let large = operator.size();
    operator.run(&after, drop + 3.0 * MINUTE, 40.0 * MINUTE);
    assert!(operator.size() * 2 < large, "{} after {large}", operator.size());
    assert!(
        operator.figures.hit_rate() >= 0.98,
        "{}",
        operator.figures.hit_rate()
    );
}

#[test]
fn the_highest_size_is_max_replicas() {
    let mut operator = Operator::new(2, json!({"maxReplicas": 12}), WARM_UP);
    operator.run(&four_minutes(), 0.0, 5.0 * MINUTE);
    assert_eq!(operator.size(), 12);
    let limited = operator
        .status()
        .conditions
        .iter()
        .find(|c| c.type_ == "ScalingLimited");
    assert_eq!(limited.unwrap().reason, "TooManyReplicas");
}
