//! Compares an autoscaled pool with other ways to choose a size, in virtual time, and writes the figures into docs.
//!
//!     cargo bench --bench autoscaling

// A simulation that cannot go on has no figures. The tests use what is not used here.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, dead_code)]

#[path = "../../tests/autoscaling/arrivals.rs"]
mod arrivals;
#[path = "../../tests/autoscaling/figures.rs"]
mod figures;
#[path = "../../tests/autoscaling/operator.rs"]
mod operator;
mod plot;
#[path = "../../tests/autoscaling/rivals.rs"]
mod rivals;

use arrivals::{Arrivals, arrivals, poisson};
use figures::Figures;
use operator::Operator;
use plot::{Line, plot};
use rivals::{Hpa, PolledBuffer, best_fixed, run};
use serde_json::json;
use std::error::Error;
use std::f64::consts::TAU;
use std::fs;
use std::path::Path;

const WARM_UP: f64 = 10.0;
const HOUR: f64 = 3600.0;
const TARGET: f64 = 0.99;
const CEILING: usize = 2000;
/// Lines between these are written by this program.
const BEGIN: &str = "<!-- figures: begin -->\n";
const END: &str = "<!-- figures: end -->";

/// Arrivals, and the time from which the figures count.
struct Scenario {
    name: &'static str,
    claims: Arrivals,
    from: f64,
    end: f64,
}

impl Scenario {
    fn steady(name: &'static str, in_warm_up: f64, batch: f64, hours: f64) -> Self {
        let (end, rate) = (hours * HOUR, in_warm_up / WARM_UP);
        let claims = match batch {
            1.0 => poisson(7, end, rate),
            _ => arrivals(7, end, rate, batch, |_| rate),
        };
        Self {
            name,
            claims,
            from: HOUR / 2.0,
            end,
        }
    }

    fn changing(name: &'static str, most: f64, hours: f64, rate: impl Fn(f64) -> f64) -> Self {
        Self {
            name,
            claims: arrivals(7, hours * HOUR, most, 1.0, rate),
            from: HOUR / 2.0,
            end: hours * HOUR,
        }
    }

    fn warmpool(&self) -> Figures {
        let mut operator = Operator::new(
            2,
            json!({"maxReplicas": CEILING, "targetHitRate": "99%"}),
            WARM_UP,
        );
        operator.run(&self.claims, self.from, self.end);
        operator.figures
    }

    fn hpa(&self) -> Figures {
        let mut hpa = Hpa::new(WARM_UP, 2, CEILING);
        run(&mut hpa, &self.claims, WARM_UP, self.from, self.end)
    }
}

fn scenarios() -> Vec<Scenario> {
    let surge = |at: f64| 1.0 + 9.0 * ((at - 1.5 * HOUR) / 60.0).clamp(0.0, 1.0);
    vec![
        Scenario::steady("one by one, 1 in a warm-up time", 1.0, 1.0, 12.0),
        Scenario::steady("one by one, 5", 5.0, 1.0, 8.0),
        Scenario::steady("one by one, 20", 20.0, 1.0, 4.0),
        Scenario::steady("one by one, 100", 100.0, 1.0, 2.0),
        Scenario::steady("one by one, 500", 500.0, 1.0, 1.0),
        Scenario::steady("batches of 3 on average (dispersion 5), 30", 30.0, 3.0, 4.0),
        Scenario::steady("batches of 10.5 (dispersion 20), 52.5", 52.5, 10.5, 4.0),
        Scenario::changing("20 for a minute, then none for two", 2.0, 4.0, |at| {
            if at % 180.0 < 60.0 { 2.0 } else { 0.0 }
        }),
        Scenario::changing("a day: from 2 at night to 38", 3.8, 24.0, |at| {
            2.0 - 1.8 * (TAU * at / (24.0 * HOUR)).cos()
        }),
        Scenario::changing("10, then 100 within a minute", 10.0, 3.0, surge),
        Scenario::changing("100, then 10 from one moment on", 10.0, 3.0, |at| {
            if at < 1.5 * HOUR { 10.0 } else { 1.0 }
        }),
    ]
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut table = String::from(
        "| claims | best fixed size | autoscaling | HPA | polled buffer |\n|---|---|---|---|---|\n",
    );
    for scenario in scenarios() {
        let Scenario {
            name,
            claims,
            from,
            end,
        } = &scenario;
        let mut best = best_fixed(claims, WARM_UP, *from, TARGET);
        let mut buffer = PolledBuffer(best.0);
        let of_best = run(&mut best, claims, WARM_UP, *from, *end);
        let of_buffer = run(&mut buffer, claims, WARM_UP, *from, *end);
        let row = format!(
            "| {name} | {}: {} | {} | {} | {} |\n",
            best.0,
            cell(&of_best),
            cell(&scenario.warmpool()),
            cell(&scenario.hpa()),
            cell(&of_buffer)
        );
        print!("{row}");
        table += &row;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    let page = root.join("autoscaling.md");
    let text = fs::read_to_string(&page)?;
    let (before, rest) = text
        .split_once(BEGIN)
        .ok_or("docs/autoscaling.md lacks its figures")?;
    let (_, after) = rest
        .split_once(END)
        .ok_or("docs/autoscaling.md lacks the end of its figures")?;
    fs::write(&page, format!("{before}{BEGIN}{table}{END}{after}"))?;
    fs::write(root.join("autoscaling.svg"), picture())?;
    Ok(())
}

/// Hit rate and mean number of available sandboxes.
fn cell(figures: &Figures) -> String {
    format!("{:.1} %, {:.0} idle", figures.hit_rate() * 100.0, figures.idle())
}

/// Sizes over time while the rate goes up tenfold and down again.
fn picture() -> String {
    let rate = |at: f64| {
        let up = ((at - 0.5 * HOUR) / 60.0).clamp(0.0, 1.0);
        let down = if at < 1.25 * HOUR { 1.0 } else { 0.0 };
        1.0 + 9.0 * up * down
    };
    let scenario = Scenario {
        from: 0.0,
        ..Scenario::changing("", 10.0, 2.0, rate)
    };
    let needed = best_fixed(&scenario.claims, WARM_UP, 0.0, TARGET).0;
    let minutes = |figures: Figures| {
        let samples = figures.sizes.into_iter();
        samples.map(|(at, size)| (at / 60.0, size as f64)).collect()
    };
    plot(
        "Size of a pool while claims come at 1/s, 10/s from minute 30 on, and 1/s again from minute 75 on",
        &[
            Line::new(
                "best fixed size",
                "#999999",
                vec![(0.0, needed as f64), (120.0, needed as f64)],
            ),
            Line::new("HorizontalPodAutoscaler", "#d95f02", minutes(scenario.hpa())),
            Line::new("autoscaling", "#1b7837", minutes(scenario.warmpool())),
        ],
    )
}
