//! Tests how the benchmarks compute and judge their figures.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a panic is how a test fails"
)]
#![allow(dead_code, reason = "the benchmarks use what is not used here")]

#[path = "../../benches/shared/machine.rs"]
mod machine;
#[path = "../../benches/shared/median.rs"]
mod median;

use machine::{Meter, Surroundings, own_seconds};
use median::median;
use std::error::Error;
use std::process::Command;
use std::time::Duration;

type Outcome<T> = Result<T, Box<dyn Error>>;

#[test]
fn the_median_of_an_even_number_of_values_is_the_mean_of_the_two_in_the_middle() {
    assert_eq!(median(&[]), None);
    assert_eq!(median(&[7.0]), Some(7.0));
    assert_eq!(median(&[3.0, 1.0]), Some(2.0));
    assert_eq!(median(&[9.0, 1.0, 5.0]), Some(5.0));
    assert_eq!(median(&[8.0, 1.0, 4.0, 3.0]), Some(3.5));
}

#[test]
fn a_measurement_is_disturbed_by_more_than_0_15_processors() {
    let surroundings = |others| Surroundings {
        load_average: 1.5,
        others,
    };
    assert_eq!(surroundings(0.15).disturbance(), None);
    let disturbance = surroundings(0.16).disturbance().unwrap();
    assert!(disturbance.contains("0.16 processors"), "{disturbance}");
    assert!(disturbance.contains("load average 1.5"), "{disturbance}");
}

/// A child that has not ended is another process, and one that has ended is the benchmark's own.
#[test]
fn a_process_that_is_no_part_of_the_benchmark_disturbs_a_measurement() {
    let before = own_seconds().unwrap();
    let meter = Meter::start(before).unwrap();
    let mut busy = Command::new("sh")
        .args(["-c", "while :; do :; done"])
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_secs(2));
    let surroundings = meter.surroundings(own_seconds().unwrap()).unwrap();
    busy.kill().unwrap();
    busy.wait().unwrap();
    assert!(surroundings.disturbance().is_some(), "{}", surroundings.others);
    assert!(own_seconds().unwrap() - before > 0.3);
}
