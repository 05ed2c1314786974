//! Lists the rows of the table of figures, with goals and the best of other operators.

/// The writes whose cost for the API server is measured.
pub const WRITES: [&str; 11] = [
    "binding, JSON Patch with its tests",
    "binding, merge patch",
    "binding, PUT",
    "status of a claim, merge patch",
    "status of a claim, JSON Patch",
    "status of a claim, PUT",
    "status of a pool, merge patch",
    "status of a pool, JSON Patch",
    "status of a pool, PUT",
    "creation of a pod, POST",
    "creation of a pod, server-side apply",
];

/// A line of the table: the figure, the values that are shown, the goal, and the best result of another operator.
///
/// Results of others are medians of runs of their own, on or before 2026-11-21, on two processors for everything: Kubernetes
/// 1.36.3, KWOK with pods Ready at once, audit log on. Which version of each was measured is not recorded.
pub struct Row {
    pub figure: &'static str,
    pub description: &'static str,
    pub values: &'static [&'static str],
    pub goal: &'static str,
    pub peer: &'static str,
}

pub const fn row(
    figure: &'static str,
    description: &'static str,
    values: &'static [&'static str],
    goal: &'static str,
    peer: &'static str,
) -> Row {
    Row {
        figure,
        description,
        values,
        goal,
        peer,
    }
}

/// A figure that divides a value of one figure by that of another: its value is `times`.
pub struct Quotient {
    pub figure: &'static str,
    pub value: &'static str,
    pub of: &'static str,
    pub by: &'static str,
}

pub const QUOTIENTS: &[Quotient] = &[
    Quotient {
        figure: "fill10k_growth",
        value: "cpu_ms_each",
        of: "fill10k",
        by: "fill",
    },
    Quotient {
        figure: "fill50k_growth",
        value: "cpu_ms_each",
        of: "fill50k",
        by: "fill10k",
    },
];

const TIMES: &[&str] = &["p50", "p99", "max"];
const PER_CLAIM: &[&str] = &["per_claim"];
const CPU: &[&str] = &["cpu_s_per_1000"];
const SPAN: &[&str] = &["p50", "p99"];
const FIRST: &[&str] = &["p50", "max"];
const MEMORY: &[&str] = &["mib", "after_start"];
const CPU_EACH: &[&str] = &["cpu_ms_each"];
const GROWTH: &[&str] = &["times"];

pub const ROWS: &[Row] = &[
    row(
        "in_a_row",
        "one claim after the other: p50 / p99 / max ms",
        TIMES,
        "",
        "",
    ),
    row(
        "rate5",
        "5 claims/s: p50 / p99 / max ms",
        TIMES,
        "1.2 / - / - x floor",
        "31 / 51 OpenSandbox",
    ),
    row(
        "rate20",
        "20 claims/s: p50 / p99 / max ms",
        TIMES,
        "1.2 / 1.5 / - x floor",
        "46 / 118 OpenSandbox",
    ),
    row(
        "unprotected20",
        "20 claims/s without PodDisruptionBudgets: p50 / p99 / max ms",
        TIMES,
        "",
        "",
    ),
    row(
        "bare20",
        "20 claims/s by a bare client: p50 / p99 / max ms",
        TIMES,
        "",
        "",
    ),
    row(
        "rate5_to_binding",
        "5 claims/s, from the answer to a claim to the request of its binding: p50 / p99 ms",
        SPAN,
        "",
        "",
    ),
    row(
        "rate5_to_status",
        "5 claims/s, from the answer to a binding to the request of the status: p50 / p99 ms",
        SPAN,
        "",
        "",
    ),
    row(
        "rate20_to_binding",
        "20 claims/s, from the answer to a claim to the request of its binding: p50 / p99 ms",
        SPAN,
        "",
        "",
    ),
    row(
        "rate20_to_status",
        "20 claims/s, from the answer to a binding to the request of the status: p50 / p99 ms",
        SPAN,
        "",
        "",
    ),
    row(
        "bare20_to_binding",
        "20 claims/s by a bare client, from the answer to a claim to the request of its binding: p50 / p99 ms",
        SPAN,
        "",
        "",
    ),
    row(
        "bare20_to_status",
        "20 claims/s by a bare client, from the answer to a binding to the request of the status: p50 / p99 ms",
        SPAN,
        "",
        "",
    ),
    row(
        "rate50",
        "50 claims/s for 15 s, released after 3 s: p50 / p99 / max ms",
        TIMES,
        "",
        "",
    ),
    row(
        "rate50",
        "50 claims/s for 15 s, released after 3 s: p99 / p50",
        &["p99_by_p50"],
        "",
        "",
    ),
    row(
        "rate50",
        "50 claims/s for 15 s, released after 3 s: claims that a later one passed / by ms at most",
        &["passed", "passed_by"],
        "",
        "",
    ),
    row(
        "warm50",
        "50 claims/s for 4 s on 500 warm, refill going on: p50 / p99 / max ms",
        TIMES,
        "- / 100 / -",
        "482 / 1097 OpenSandbox, tuned",
    ),
    row(
        "warm50",
        "50 claims/s for 4 s on 500 warm, refill going on: p99 / p50",
        &["p99_by_p50"],
        "",
        "2.3 OpenSandbox, tuned",
    ),
    row(
        "bare50",
        "50 claims/s for 4 s on 500 warm by a bare client: p50 / p99 / max ms",
        TIMES,
        "",
        "",
    ),
    row(
        "stock50",
        "50 claims/s for 10 s from 500 warm, without refill: p50 / p99 / max ms",
        TIMES,
        "",
        "",
    ),
    row(
        "stock50",
        "50 claims/s for 10 s from 500 warm, without refill: p99 / p50",
        &["p99_by_p50"],
        "",
        "",
    ),
    row(
        "stock50",
        "50 claims/s for 10 s from 500 warm, without refill: claims that a later one passed / by ms at most",
        &["passed", "passed_by"],
        "",
        "",
    ),
    row(
        "sustained",
        "claims/s held for 30 s with released claims replaced",
        &["rate"],
        "50",
        "20",
    ),
    row(
        "sustained",
        "p99 ms at the rate that the operator holds for 30 s",
        &["p99"],
        "1000",
        "",
    ),
    row(
        "batch",
        "one claim for 100 on 120 warm: p50 / max ms",
        &["p50", "max"],
        "",
        "",
    ),
    row(
        "burst",
        "burst of 300 on 320 warm: all POSTed / all Ready / full again s",
        &["posted", "ready", "refilled"],
        "- / 1.25 x floor / -",
        "4.5 OpenSandbox, tuned",
    ),
    row(
        "burst",
        "burst of 300 on 320 warm, each from its start: p50 / p99 ms",
        SPAN,
        "",
        "",
    ),
    row(
        "rate20_writes",
        "own writes per claim at 20/s, refill included",
        PER_CLAIM,
        "",
        "5.8 OpenSandbox, tuned",
    ),
    row(
        "burst_writes",
        "own writes per claim in the burst, refill included",
        PER_CLAIM,
        "",
        "",
    ),
    row(
        "rate20_writes",
        "CPU s per 1,000 claims at 20/s, refill included",
        CPU,
        "2.0",
        "",
    ),
    row("rate50_writes", "CPU s per 1,000 claims at 50/s", CPU, "2.0", ""),
    row(
        "stock50_writes",
        "own writes per claim at 50/s without refill",
        PER_CLAIM,
        "",
        "",
    ),
    row("burst_writes", "CPU s per 1,000 claims in the burst", CPU, "", ""),
    row(
        "rate20_writes",
        "at 20/s answered 409 / 422",
        &["409", "422"],
        "",
        "",
    ),
    row(
        "burst_writes",
        "in the burst answered 409 / 422",
        &["409", "422"],
        "",
        "",
    ),
    row("idle", "writes a minute with 1,000 warm", &["writes"], "", ""),
    row(
        "idle",
        "CPU s a minute with 1,000 warm",
        &["cpu_s"],
        "",
        "0.03 OpenSandbox",
    ),
    row(
        "timers",
        "10,000 pending timers for 30 s: CPU s / writes",
        &["cpu_s", "writes"],
        "",
        "",
    ),
    row(
        "fill",
        "fill of 1,000: s",
        &["seconds"],
        "1.15 x floor",
        "9.8 OpenSandbox, tuned",
    ),
    row(
        "start10k",
        "first binding after a start with 10,000 warm: p50 / max s",
        FIRST,
        "0.5 / -",
        "",
    ),
    row(
        "start50k",
        "first binding after a start with 50,000 warm: p50 / max s",
        FIRST,
        "",
        "",
    ),
    row(
        "fill",
        "CPU ms per sandbox in a fill of 1,000",
        CPU_EACH,
        "0.5",
        "",
    ),
    row(
        "fill10k",
        "CPU ms per sandbox in a fill of 10,000",
        CPU_EACH,
        "0.5",
        "",
    ),
    row(
        "fill50k",
        "CPU ms per sandbox in a fill of 50,000",
        CPU_EACH,
        "0.5",
        "",
    ),
    row(
        "fill10k_growth",
        "CPU per sandbox in a fill of 10,000 beside one of 1,000: times",
        GROWTH,
        "1 (flat)",
        "",
    ),
    row(
        "fill50k_growth",
        "CPU per sandbox in a fill of 50,000 beside one of 10,000: times",
        GROWTH,
        "1 (flat)",
        "",
    ),
    row("memory0", "resident without pods: MiB", &["mib"], "12", ""),
    row(
        "memory",
        "resident with 1,000 warm: MiB",
        &["mib"],
        "15",
        "81 OpenSandbox",
    ),
    row(
        "burst_memory",
        "resident before a burst of 300 / once full again / at rest after it MiB",
        &["before", "full", "settled"],
        "",
        "",
    ),
    row(
        "burst_memory",
        "resident at rest after a burst of 300 beside before it: times",
        GROWTH,
        "",
        "",
    ),
    row(
        "memory10k",
        "resident with 10,000 warm: after the fill / after a start MiB",
        MEMORY,
        "30 / 1.25 x the fill",
        "",
    ),
    row(
        "memory50k",
        "resident with 50,000 warm: after the fill / after a start MiB",
        MEMORY,
        "100 / 1.25 x the fill",
        "",
    ),
    row(
        "roll",
        "roll 20 at 25 %, Ready after 2 s: least available / s",
        &["least", "seconds"],
        "15 / 8.4",
        "15 / 8.2 OpenSandbox",
    ),
    row("roll1000", "roll 1,000 at 25 %: s", &["seconds"], "", ""),
    row(
        "roll1000",
        "roll 1,000 at 25 %: least available",
        &["least"],
        "",
        "",
    ),
    row(
        "roll1000",
        "roll 1,000: writes per sandbox, of pods / all",
        &["pods", "all"],
        "",
        "",
    ),
];
