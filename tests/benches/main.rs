//! Tests how the benchmarks compute and judge their figures.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a panic is how a test fails"
)]

#[path = "../../benches/shared/median.rs"]
mod median;

use median::median;

#[test]
fn the_median_of_an_even_number_of_values_is_the_mean_of_the_two_in_the_middle() {
    assert_eq!(median(&[]), None);
    assert_eq!(median(&[7.0]), Some(7.0));
    assert_eq!(median(&[3.0, 1.0]), Some(2.0));
    assert_eq!(median(&[9.0, 1.0, 5.0]), Some(5.0));
    assert_eq!(median(&[8.0, 1.0, 4.0, 3.0]), Some(3.5));
}
