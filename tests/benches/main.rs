//! Tests how the benchmarks compute and judge their figures.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a panic is how a test fails"
)]
#![allow(dead_code, reason = "the benchmarks use what is not used here")]

#[path = "../../benches/cluster/audit.rs"]
mod audit;
#[path = "../../benches/cluster/figures.rs"]
mod figures;
#[path = "../../benches/shared/machine.rs"]
mod machine;
#[path = "../../benches/shared/median.rs"]
mod median;
#[path = "../../benches/cluster/plot.rs"]
mod plot;
#[path = "../../benches/cluster/report.rs"]
mod report;
#[path = "../../benches/cluster/rows.rs"]
mod rows;
#[path = "../../benches/cluster/served.rs"]
mod served;

use audit::{AuditLog, LOAD, OPERATOR};
use figures::of_burst;
use machine::{Meter, Surroundings, own_seconds, used_by_others};
use median::median;
use plot::{BurstOverTime, draw_bursts};
use report::{Report, Side};
use serde_json::json;
use served::Served;
use std::collections::HashMap;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

fn surroundings(others: f64) -> Surroundings {
    Surroundings {
        load_average: 1.5,
        others,
    }
}

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
    assert_eq!(surroundings(0.15).disturbance(), None);
    let disturbance = surroundings(0.16).disturbance().unwrap();
    assert!(disturbance.contains("0.16 processors"), "{disturbance}");
    assert!(disturbance.contains("load average 1.5"), "{disturbance}");
}

#[test]
fn a_measurement_of_a_few_ticks_is_not_disturbed_by_their_rounding() {
    let others = |busy, ours, ms| used_by_others(busy, ours, Duration::from_millis(ms));
    assert_eq!(others(0.05, 0.01, 40), 0.0);
    assert!(surroundings(others(0.5, 0.1, 1000)).disturbance().is_some());
    assert!(surroundings(others(20.0, 10.0, 30_000)).disturbance().is_some());
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

/// The cells of the row that begins with `description`, in Markdown.
fn cells(report: &Report, description: &str) -> Vec<String> {
    let table = report.markdown();
    let line = table
        .lines()
        .find(|line| line.starts_with(&format!("| {description}")));
    let line = line.unwrap_or_else(|| panic!("no row {description} in\n{table}"));
    line.trim_matches('|')
        .split(" | ")
        .map(|cell| cell.trim().to_string())
        .collect()
}

#[test]
fn a_ratio_is_left_out_alone_where_one_side_was_not_measured() {
    let mut report = Report::default();
    report.record(
        "burst",
        Side::Ours,
        json!({"posted": 1.5, "ready": 3.0, "refilled": 5.0}),
    );
    report.record("burst", Side::Floor, json!({"posted": null, "ready": 2.0}));
    let row = cells(&report, "burst of 300 on 320 warm: all POSTed");
    assert_eq!(row[1], "1.5 / 3 / 5");
    assert_eq!(row[2], "- / 2 / -");
    assert_eq!(row[3], "- / 1.50 / -");
}

#[test]
fn a_cell_shows_the_median_of_the_repetitions_and_their_range() {
    let mut report = Report::default();
    for seconds in [6.0, 9.0, 7.0, 8.0] {
        report.record("fill", Side::Ours, json!({"seconds": seconds}));
    }
    for seconds in [5.0, 2.5] {
        report.record("fill", Side::Floor, json!({"seconds": seconds}));
    }
    let row = cells(&report, "fill of 1,000: s");
    assert_eq!(row[1..4], ["7.5 (6-9)", "3.8 (2.5-5)", "2.00"]);
}

#[test]
fn a_disturbed_phase_marks_its_figures_and_makes_the_report_no_quiet_one() {
    let (quiet, busy) = (surroundings(0.01), surroundings(0.5));
    let mut report = Report::default();
    report.record("fill", Side::Ours, json!({"seconds": 6.0}));
    report.phase_is_over("fill", &quiet);
    assert!(report.is_quiet());
    report.record("in_a_row", Side::Floor, json!({"p50": 6.0}));
    report.phase_is_over("floor", &busy);
    assert!(!report.is_quiet());
    assert_eq!(cells(&report, "fill of 1,000")[0], "fill of 1,000: s");
    let marked = cells(&report, "one claim after the other").remove(0);
    assert!(marked.ends_with("(disturbed)"), "{marked}");

    let mut only_drawn = Report::default();
    only_drawn.phase_is_over("drawn", &busy);
    assert!(!only_drawn.is_quiet(), "a phase without figures was disturbed");
}

#[test]
fn the_latencies_of_a_burst_count_from_its_start_and_are_all_kept() {
    let began = Instant::now();
    let names: Vec<String> = (1..=100).map(|number| format!("burst-{number}")).collect();
    let due: HashMap<_, _> = names.iter().map(|name| (name.clone(), began)).collect();
    let after = |number: u64| began + Duration::from_millis(10 * number);
    let ready = (1..)
        .zip(&names)
        .map(|(number, name)| (name.clone(), after(number)));
    let served = Served::new(&due, &ready.collect(), &names, 0);
    let figures = of_burst(&served, None, Some(Duration::from_secs(2))).unwrap();
    assert_eq!(figures["ready"], 1.0);
    assert_eq!(figures["refilled"], 2.0);
    assert_eq!(figures["posted"], json!(null));
    let p50 = figures["p50"].as_f64().unwrap();
    assert!((p50 - 500.0).abs() < 1.0, "{p50}");
    let counts = figures["microseconds"].as_array().unwrap();
    let kept: u64 = counts.iter().map(|step| step[1].as_u64().unwrap()).sum();
    assert_eq!(kept, 100);
}

#[test]
fn a_claim_is_passed_where_a_later_one_is_ready_before_it() {
    let began = Instant::now();
    let at = |milliseconds| began + Duration::from_millis(milliseconds);
    let ready = HashMap::from([
        ("first".to_string(), at(50)),
        ("second".to_string(), at(20)),
        ("third".to_string(), at(30)),
    ]);
    let order = ["first", "second", "third"].map(String::from);
    let due = order.iter().map(|name| (name.clone(), began)).collect();
    let served = Served::new(&due, &ready, &order, 0);
    assert_eq!((served.passed, served.passed_by), (1, Duration::from_millis(30)));
}

#[test]
fn what_a_sandbox_costs_in_a_large_fill_is_divided_by_what_it_costs_in_a_small_one() {
    let mut report = Report::default();
    for each in [0.4, 0.6] {
        report.record("fill", Side::Ours, json!({"cpu_ms_each": each}));
    }
    assert!(!report.markdown().contains("10,000 beside one of 1,000"));
    report.phase_is_over("fill", &surroundings(0.01));
    report.record("fill10k", Side::Ours, json!({"cpu_ms_each": 1.25}));
    report.phase_is_over("start", &surroundings(0.5));
    let row = cells(&report, "CPU per sandbox in a fill of 10,000 beside one of 1,000");
    assert_eq!(row[1], "2.5");
    assert!(row[0].ends_with("(disturbed)"), "{}", row[0]);
}

/// A line of the audit log. `received` and `answered` are milliseconds of one second.
fn entry(user: &str, verb: &str, resource: &str, name: &str, received: u32, answered: u32) -> String {
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    let mut object = json!({"resource": resource, "name": name});
    if !subresource.is_empty() {
        object["subresource"] = json!(subresource);
    }
    json!({
        "verb": verb, "user": {"username": user}, "objectRef": object, "responseStatus": {"code": 200},
        "requestReceivedTimestamp": format!("2026-01-31T12:00:00.{received:03}000Z"),
        "stageTimestamp": format!("2026-01-31T12:00:00.{answered:03}000Z"),
    })
    .to_string()
}

#[test]
fn the_operators_part_lies_between_an_answer_and_its_next_request() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.log");
    fs::write(&path, entry(LOAD, "create", "sandboxclaims", "slow", 0, 1) + "\n").unwrap();
    let log = AuditLog::mark(path.clone()).unwrap();
    let mut text = fs::read_to_string(&path).unwrap();
    for line in [
        entry(LOAD, "create", "sandboxclaims", "slow", 100, 105),
        entry(LOAD, "patch", "pods", "pod-1", 106, 106),
        entry(OPERATOR, "patch", "pods", "pod-1", 107, 112),
        entry("kwok", "patch", "pods", "pod-2", 90, 95),
        entry(OPERATOR, "update", "sandboxclaims/status", "slow", 115, 120),
        entry(OPERATOR, "update", "sandboxclaims/status", "slow", 140, 145),
        entry(LOAD, "create", "sandboxclaims", "early", 200, 205),
        entry(OPERATOR, "patch", "pods", "pod-2", 204, 210),
        entry(OPERATOR, "update", "sandboxclaims/status", "early", 214, 220),
    ] {
        writeln!(text, "{line}").unwrap();
    }
    fs::write(&path, text).unwrap();
    let bound = HashMap::from([
        ("slow".to_string(), "pod-1".to_string()),
        ("early".to_string(), "pod-2".to_string()),
        ("never bound".to_string(), "pod-3".to_string()),
    ]);
    let spans = log.spans(OPERATOR, &bound).unwrap();
    assert_eq!(spans.to_binding, [0, 2].map(Duration::from_millis));
    assert_eq!(spans.to_status, [3, 4].map(Duration::from_millis));
    assert_eq!(log.writes_of(OPERATOR).unwrap().total(), 5);
}

#[test]
fn a_burst_with_and_one_without_the_rule_are_drawn_into_one_picture() {
    let folder = tempfile::tempdir().unwrap();
    let burst = |title, every: u64| {
        let began = Instant::now();
        let after = |milliseconds| began + Duration::from_millis(milliseconds);
        let taken = (1..=300).map(|number| (after(every * number), 320 - number as usize));
        let refilled = (1..=300).map(|number| (after(300 * every + 8 * number), 20 + number as usize));
        BurstOverTime {
            title,
            began,
            waited: (1..=300)
                .map(|number| Duration::from_millis(every * number))
                .collect(),
            available: taken.chain(refilled).collect(),
            refilled: Duration::from_millis(300 * every + 2_400),
        }
    };
    let bursts = [
        burst("Refill yields to bindings", 8),
        burst("Refill at full speed", 12),
    ];
    draw_bursts(&bursts, folder.path()).unwrap();
    let picture = fs::read_to_string(folder.path().join("burst.svg")).unwrap();
    for caption in [
        "Refill yields to bindings: all claims Ready after 2.4 s, the pool full again after 4.8 s",
        "Refill at full speed: all claims Ready after 3.6 s, the pool full again after 6.0 s",
    ] {
        assert!(picture.contains(caption), "{caption}");
    }
}
