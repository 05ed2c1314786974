//! Checks which sizes `size` prints for arrival times.

use jiff::SignedDuration;
use warmpool::cli::kubectl::size::arrivals::parse;
use warmpool::cli::kubectl::size::of_arrivals;
use warmpool::model::autoscaling::HitRate;

fn table(file: &str, target: Option<&str>) -> Option<String> {
    let target = target.map(|target| HitRate::parse(target).unwrap());
    let report = of_arrivals(&parse(file).unwrap(), SignedDuration::from_secs(10), target);
    report.map(|report| report.text())
}

#[test]
fn the_size_is_the_most_that_enough_claims_saw_within_a_warm_up_time() {
    // Of eleven claims, ten see no other within ten seconds, and one sees another two and comes for two.
    let file = "# seconds, sandboxes\n0\n1\n100\n200\n300\n400\n500\n600\n700\n800\n1000\n\n2 2\n";
    let said = table(file, None).unwrap();
    let rows: Vec<Vec<&str>> = said
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert!(
        said.starts_with("12 claims in 0.3 hours, 47 sandboxes per hour, warm-up time 10.0 s.\n"),
        "{said}"
    );
    assert_eq!(rows[2][..2], ["90%", "2"]);
    assert_eq!(rows[5][..2], ["99.9%", "4"]);
    // Ten claims for one keep one of four warming for ten seconds of a thousand each, and the others a little more.
    assert_eq!(rows[5][2..], ["3.9", "93"]);
}

#[test]
fn one_size_is_printed_for_a_target() {
    let said = table("0\n1\n", Some("50%")).unwrap();
    assert_eq!(said.lines().count(), 3, "{said}");
    assert!(
        said.lines().last().unwrap().starts_with("50%             1"),
        "{said}"
    );
}

#[test]
fn times_may_be_dates_in_any_order() {
    let dates = "2026-01-31T12:00:05Z\n2026-01-31T12:00:00Z\n2026-01-31T13:00:00Z 3\n";
    let said = table(dates, Some("99%")).unwrap();
    assert!(
        said.lines().last().unwrap().starts_with("99%             3"),
        "{said}"
    );
}

#[test]
fn a_line_that_is_no_arrival_is_named() {
    for (file, line) in [
        ("0\nsoon\n", 2),
        ("0 0", 1),
        ("0 1 2", 1),
        ("0 -1", 1),
        ("1e400", 1),
    ] {
        let error = parse(file).unwrap_err();
        assert_eq!(error.line, line, "{file}");
        assert!(error.to_string().contains("write a time"), "{error}");
    }
}

#[test]
fn a_file_without_arrivals_has_no_size() {
    assert_eq!(table("# none\n", None), None);
}
