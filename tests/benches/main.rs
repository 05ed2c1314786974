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
#[path = "../../benches/shared/memory.rs"]
mod memory;
#[path = "../../benches/cluster/operator.rs"]
mod operator;
#[path = "../../benches/cluster/parts.rs"]
mod parts;
#[path = "../../benches/cluster/plot.rs"]
mod plot;
#[path = "../../benches/cluster/report.rs"]
mod report;
#[path = "../../benches/cluster/rows.rs"]
mod rows;
#[path = "../../benches/cluster/served.rs"]
mod served;
#[path = "../../benches/shared/speed.rs"]
mod speed;

use audit::{AuditLog, LOAD, OPERATOR};
use figures::of_burst;
use machine::{Meter, Surroundings, own_seconds, used_by, used_by_others};
use median::median;
use operator::{Begins, Election, Operator};
use plot::{BurstOverTime, draw_bursts};
use report::{Report, Side, TRIES};
use serde_json::{Value, json};
use served::Served;
use speed::variation;
use std::collections::HashMap;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::{Duration, Instant};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// What the fixed calculation took before a phase.
const CALCULATED_IN: Duration = Duration::from_millis(50);

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
    // On a busy machine it may get little of each second.
    for _ in 0..1200 {
        if used_by(busy.id(), 2).unwrap() >= 1.0 {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    let surroundings = meter.surroundings(own_seconds().unwrap()).unwrap();
    busy.kill().unwrap();
    busy.wait().unwrap();
    assert!(surroundings.disturbance().is_some(), "{}", surroundings.others);
    assert!(own_seconds().unwrap() - before > 0.9);
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
        report.record("in_a_row", Side::Floor, json!({"p50": seconds}));
    }
    assert_eq!(cells(&report, "fill of 1,000: s")[1], "7.5 (6-9)");
    assert_eq!(
        cells(&report, "one claim after the other")[2],
        "3.8 (2.5-5) / - / -"
    );
}

#[test]
fn a_ratio_compares_each_repetition_with_the_floor_right_before_and_after_it() {
    let mut report = Report::default();
    // The machine is four times as slow in the second repetition.
    for (before, ours, after) in [(4.0, 6.0, 6.0), (16.0, 22.0, 24.0), (5.0, 7.0, 5.0)] {
        report.record("fill", Side::Floor, json!({"seconds": before}));
        report.record("fill", Side::Ours, json!({"seconds": ours}));
        report.record("fill", Side::Floor, json!({"seconds": after}));
    }
    let row = cells(&report, "fill of 1,000: s");
    assert_eq!(row[1..4], ["7 (6-22)", "5.5 (4-24)", "1.20 (1.10-1.40)"]);
}

#[test]
fn a_ratio_is_left_out_where_the_floor_was_not_measured_in_every_repetition() {
    let mut report = Report::default();
    for seconds in [6.0, 7.0] {
        report.record("fill", Side::Ours, json!({"seconds": seconds}));
    }
    for seconds in [4.0, 6.0, 5.0] {
        report.record("fill", Side::Floor, json!({"seconds": seconds}));
    }
    assert_eq!(cells(&report, "fill of 1,000: s")[3], "-");
}

#[test]
fn a_disturbed_phase_marks_its_figures_and_makes_the_report_no_quiet_one() {
    let (quiet, busy) = (surroundings(0.01), surroundings(0.5));
    let mut report = Report::default();
    report.record("fill", Side::Ours, json!({"seconds": 6.0}));
    report.try_is_over("fill", &quiet, CALCULATED_IN);
    assert!(report.is_quiet());
    report.record("in_a_row", Side::Floor, json!({"p50": 6.0}));
    report.try_is_over("in-a-row", &busy, CALCULATED_IN);
    assert!(!report.is_quiet());
    assert_eq!(cells(&report, "fill of 1,000")[0], "fill of 1,000: s");
    let marked = cells(&report, "one claim after the other").remove(0);
    assert!(marked.ends_with("(disturbed)"), "{marked}");

    let mut only_drawn = Report::default();
    only_drawn.try_is_over("drawn", &busy, CALCULATED_IN);
    assert!(!only_drawn.is_quiet(), "a phase without figures was disturbed");
}

/// The line of JSON that a run adds to its file.
fn line(report: &Report) -> Value {
    let file = tempfile::NamedTempFile::new().unwrap();
    report.append_to(file.path()).unwrap();
    serde_json::from_str(&fs::read_to_string(file.path()).unwrap()).unwrap()
}

/// Records what one try of a phase measures, on both sides, and returns whether the phase is measured again.
fn is_measured_again(report: &mut Report, seconds: f64, others: f64) -> bool {
    report.record("fill", Side::Ours, json!({"seconds": seconds}));
    report.record("fill", Side::Floor, json!({"seconds": seconds / 2.0}));
    report.record("memory", Side::Ours, json!({"mib": seconds}));
    report.try_is_over("fill", &surroundings(others), CALCULATED_IN)
}

#[test]
fn a_disturbed_phase_leaves_no_figures_when_it_is_measured_again() {
    let mut report = Report::with_tries(TRIES);
    assert!(is_measured_again(&mut report, 9.0, 0.5));
    assert_eq!(line(&report)["ours"], json!({}));
    assert_eq!(line(&report)["floor"], json!({}));
    assert!(!is_measured_again(&mut report, 6.0, 0.01));
    assert!(is_measured_again(&mut report, 9.0, 0.5), "in the next repetition");
    assert!(!is_measured_again(&mut report, 7.0, 0.01));
    let written = line(&report);
    assert_eq!(
        written["ours"]["fill"],
        json!([{"seconds": 6.0}, {"seconds": 7.0}])
    );
    assert_eq!(
        written["floor"]["fill"],
        json!([{"seconds": 3.0}, {"seconds": 3.5}])
    );
    assert_eq!(written["ours"]["memory"], json!([{"mib": 6.0}, {"mib": 7.0}]));
    assert_eq!(written["disturbed"], json!([]));
    assert!(report.is_quiet());
}

#[test]
fn the_third_disturbed_try_of_a_phase_keeps_its_figures_and_marks_them() {
    let mut report = Report::with_tries(TRIES);
    let tries = [7.0, 8.0, 9.0].map(|seconds| is_measured_again(&mut report, seconds, 0.5));
    assert_eq!(tries, [true, true, false]);
    let row = cells(&report, "fill of 1,000: s");
    assert_eq!(row[..3], ["fill of 1,000: s (disturbed)", "9", "4.5"]);
    assert!(!report.is_quiet());
    assert!(
        is_measured_again(&mut report, 9.0, 0.5),
        "the next phase has three tries of its own"
    );
}

#[test]
fn no_phase_is_measured_again_where_a_busy_machine_is_accepted() {
    let mut report = Report::with_tries(1);
    assert!(!is_measured_again(&mut report, 9.0, 0.5));
    assert_eq!(cells(&report, "fill of 1,000: s")[1], "9");
    assert!(!report.is_quiet());
}

#[test]
fn the_surroundings_of_every_try_are_kept() {
    let mut report = Report::with_tries(TRIES);
    for others in [0.5, 0.25, 0.01] {
        is_measured_again(&mut report, 6.0, others);
    }
    let machine = line(&report)["machine"].take();
    let tries = machine.as_array().unwrap().iter();
    let tries = tries.map(|kept| {
        json!([
            kept["phase"],
            kept["processors_of_others"],
            kept["measured_again"]
        ])
    });
    assert_eq!(
        tries.collect::<Vec<_>>(),
        [
            json!(["fill", 0.5, true]),
            json!(["fill", 0.25, true]),
            json!(["fill", 0.01, false])
        ]
    );
}

#[test]
fn the_speed_of_the_machine_is_said_where_two_phases_were_measured() {
    let milliseconds = |all: &[f64]| {
        all.iter()
            .map(|ms| Duration::from_secs_f64(ms / 1e3))
            .collect::<Vec<_>>()
    };
    assert_eq!(variation(&[]), None);
    assert_eq!(variation(&milliseconds(&[48.0])), None);
    assert_eq!(
        variation(&milliseconds(&[50.1, 48.1, 53.9])).unwrap(),
        "The machine's speed varied by a factor of 1.12 between phases: the same calculation took 48 to 54 ms."
    );
}

#[test]
fn the_speed_stands_below_both_tables_and_counts_no_try_that_is_measured_again() {
    let mut report = Report::with_tries(TRIES);
    for (others, ms) in [(0.01, 50), (0.5, 90), (0.01, 55)] {
        report.record("fill", Side::Ours, json!({"seconds": 6.0}));
        report.try_is_over("fill", &surroundings(others), Duration::from_millis(ms));
    }
    let said = "The machine's speed varied by a factor of 1.10 between phases: the same calculation took 50 to 55 ms.";
    for table in [report.table(), report.markdown()] {
        assert!(table.ends_with(&format!("\n\n{said}\n")), "{table}");
    }
    let tries = line(&report)["machine"].take();
    let took = tries
        .as_array()
        .unwrap()
        .iter()
        .map(|kept| kept["calculation_ms"].as_f64().unwrap());
    assert_eq!(took.collect::<Vec<_>>(), [50.0, 90.0, 55.0]);
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
    report.try_is_over("fill", &surroundings(0.01), CALCULATED_IN);
    report.record("fill10k", Side::Ours, json!({"cpu_ms_each": 1.25}));
    report.try_is_over("start", &surroundings(0.5), CALCULATED_IN);
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

/// perf records a start from its first instruction: it needs the process before the operator runs in it.
#[tokio::test]
async fn an_operator_that_waits_runs_in_the_same_process_once_it_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let (program, log) = (folder.path().join("a program"), folder.path().join("log"));
    let script = "#!/bin/sh\necho \"$$ $1 $3 $KUBECONFIG\"\ntrap 'echo ended; exit' TERM\nwhile :; do sleep 0.01; done\n";
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    let start = |begins| Operator::start(&program, &kubeconfig, "warn,a b", Election::Off, begins, &log);
    let printed = || fs::read_to_string(&log).unwrap();
    let until = async |text: String| {
        let began = Instant::now();
        while !printed().contains(&text) {
            assert!(
                began.elapsed() < Duration::from_secs(20),
                "{text} is not in {}",
                printed()
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    for begins in [Begins::WhenTold, Begins::AtOnce] {
        let mut operator = start(begins).unwrap();
        let expected = format!("{} controller warn,a b {}\n", operator.id(), kubeconfig.display());
        if begins == Begins::WhenTold {
            tokio::time::sleep(Duration::from_millis(300)).await;
            operator.is_running().unwrap();
            assert_eq!(printed(), "");
        }
        operator.begin();
        until(expected).await;
        operator.stop().await.unwrap();
        assert!(printed().ends_with("ended\n"), "{}", printed());
    }
}
