//! Finds the highest rate of claims that is served without falling behind while claims are released and sandboxes replaced.
//!
//! A rate holds when its p99 stays below a second and the backlog does not grow. The backlog is what is waited for: claims
//! that are due and not Ready, and sandboxes that are missing from the pool. Without it, a pool that empties slowly
//! would pass. The floor climbs the same ladder with the same writes by hand, from the rate that the operator holds, so that both
//! have a p99 at that rate.

use crate::Outcome;
use crate::by_hand::Hand;
use crate::figures::{brief, milliseconds};
use crate::lab::Lab;
use crate::load;
use crate::rate::{Rate, rate};
use crate::report::Side;
use crate::scene::Scene;
use crate::watches::{Claims, Pods, WatchedState};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The rates that are tried, in claims a second.
const LADDER: [u32; 5] = [20, 30, 40, 50, 60];
/// The operator's first rate in the ladder. A lower one is tried only if this one does not hold.
const FIRST: usize = 1;
const SECONDS: u32 = 30;
const WARM: usize = 300;
const HELD: Duration = Duration::from_secs(5);
/// A rate holds with a p99 below this, in milliseconds.
const LONGEST: f64 = 1_000.0;
/// Interval of samples of the backlog.
const SAMPLE: Duration = Duration::from_millis(250);

pub async fn run(lab: &Lab<'_>) -> Outcome<()> {
    let mut scene = Scene::open(lab, "sustained").await?;
    let pods = scene.watch_pods();
    scene.operator = Some(lab.start_operator("sustained")?);
    scene.create_pool(WARM, crate::scene::template("image:1")).await?;
    let mut ladder = Ladder::default();
    while let Some(rung) = ladder.next(FIRST) {
        scene.rest().await?;
        let submit = load::submit(&scene);
        ladder.tried(rung, step(&scene, &pods, rung, submit).await?);
    }
    scene.close().await?;
    lab.record("sustained", Side::Ours, ladder.figures(ladder.best));
    by_hand(lab, ladder.best).await
}

/// Climbs from the rung that the operator holds, or from the lowest.
async fn by_hand(lab: &Lab<'_>, of_operator: Option<usize>) -> Outcome<()> {
    let mut scene = Scene::open(lab, "sustained-floor").await?;
    let hand = Hand::new(&mut scene).await?;
    let pods = scene.pods.as_ref().map(|pods| Arc::clone(&pods.state));
    let pods = pods.ok_or("the pods are not watched")?;
    let mut ladder = Ladder::default();
    println!("  by hand:");
    while let Some(rung) = ladder.next(of_operator.unwrap_or_default()) {
        hand.fill(WARM).await?;
        hand.rest(&scene).await?;
        ladder.tried(rung, step(&scene, &pods, rung, hand.submit(true)).await?);
    }
    lab.record("sustained", Side::Floor, ladder.figures(of_operator));
    scene.close().await
}

/// The rungs that were tried, and the highest that holds.
#[derive(Default)]
struct Ladder {
    best: Option<usize>,
    tried: Vec<(usize, Step)>,
}

impl Ladder {
    /// The next rung to try: upwards from `first` until one fails, or downwards until one holds.
    fn next(&self, first: usize) -> Option<usize> {
        let rung = match self.tried.last() {
            None => first,
            Some((rung, step)) if step.holds() => rung + 1,
            Some((rung, _)) if self.best.is_none() => rung.checked_sub(1)?,
            Some(_) => return None,
        };
        let is_known = self.tried.iter().any(|(tried, _)| *tried == rung);
        (rung < LADDER.len() && !is_known).then_some(rung)
    }

    fn tried(&mut self, rung: usize, step: Step) {
        if step.holds() {
            self.best = self.best.max(Some(rung));
        }
        self.tried.push((rung, step));
    }

    /// The highest rate that holds, the p99 at the rung that the operator holds, and all that were tried.
    fn figures(&self, of_operator: Option<usize>) -> Value {
        let at = |rung: Option<usize>| self.tried.iter().find(|(tried, _)| Some(*tried) == rung);
        let steps: Vec<_> = self.tried.iter().map(|(_, step)| step.figures()).collect();
        json!({
            "rate": at(self.best).map_or(0, |(_, step)| step.rate),
            "p99": at(of_operator).map(|(_, step)| step.p99),
            "steps": steps,
        })
    }
}

/// What came of one rate.
struct Step {
    rate: u32,
    p99: f64,
    times: Value,
    /// The mean backlog in the second and in the last third of the time.
    backlog: (f64, f64),
}

impl Step {
    /// A backlog grows when it gains half a second's claims between its two means, which are ten seconds apart: a
    /// twentieth of the rate is not served.
    fn holds(&self) -> bool {
        let (before, after) = self.backlog;
        self.p99 < LONGEST && after - before <= f64::from(self.rate) / 2.0
    }

    fn figures(&self) -> Value {
        let (before, after) = self.backlog;
        json!({"rate": self.rate, "holds": self.holds(), "backlog": [before, after], "ms": self.times})
    }
}

async fn step<F>(
    scene: &Scene,
    pods: &WatchedState<Pods>,
    rung: usize,
    submit: impl Fn(String) -> F,
) -> Outcome<Step>
where
    F: Future<Output = Outcome<()>> + Send + 'static,
{
    let a_second = LADDER.get(rung).copied().ok_or("no such rung")?;
    let load = Rate {
        held: Some(HELD),
        ..rate("sustained", "sustained_writes", a_second, SECONDS)
    };
    let (served, backlog) = tokio::join!(
        load::steady(scene, &load, submit),
        backlog(&scene.claims.state, pods, a_second),
    );
    let times = milliseconds(&served?)?;
    let p99 = times.get("p99").and_then(Value::as_f64).unwrap_or(f64::INFINITY);
    let step = Step {
        rate: a_second,
        p99,
        times,
        backlog,
    };
    let verdict = if step.holds() { "holds" } else { "does not hold" };
    println!(
        "  {a_second} claims a second: {verdict}; backlog {:.0}, then {:.0}; ms: {}",
        backlog.0,
        backlog.1,
        brief(&step.times)
    );
    Ok(step)
}

/// The mean backlog in the second and in the last third of the load.
async fn backlog(claims: &WatchedState<Claims>, pods: &WatchedState<Pods>, a_second: u32) -> (f64, f64) {
    let (began, third) = (Instant::now(), f64::from(SECONDS) / 3.0);
    let (mut second, mut last) = (Vec::new(), Vec::new());
    while began.elapsed().as_secs_f64() < 3.0 * third {
        tokio::time::sleep(SAMPLE).await;
        let at = began.elapsed().as_secs_f64();
        let due = at.min(f64::from(SECONDS)) * f64::from(a_second);
        let waiting = (due - claims.with(|claims| claims.ready.len()) as f64).max(0.0);
        let missing = WARM.saturating_sub(pods.with(|pods| pods.available.len())) as f64;
        if at >= 2.0 * third {
            last.push(waiting + missing);
        } else if at >= third {
            second.push(waiting + missing);
        }
    }
    let mean = |samples: &[f64]| samples.iter().sum::<f64>() / samples.len().max(1) as f64;
    (mean(&second), mean(&last))
}
