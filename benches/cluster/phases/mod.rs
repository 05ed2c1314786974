//! Runs the phases in order, each within a time limit.

mod batch;
mod burst;
mod fifty_thousand;
mod fill;
mod floor;
mod idle;
mod roll;
mod roll1000;
mod start;
pub mod steady;
mod sustained;
mod timers;
mod verbs;

use crate::Outcome;
use crate::lab::Lab;
use crate::operator::tail;
use crate::parts::Meter;
use crate::plot::BurstOverTime;
use clap::ValueEnum;
use std::path::Path;
use std::time::Duration;
use steady::Rate;

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Phase {
    /// The same writes by hand, with no operator
    Floor,
    /// 5 claims a second for 20 s on a pool of 200
    Rate5,
    /// 20 claims a second for 20 s on a pool of 200
    Rate20,
    /// The same on a pool without PodDisruptionBudgets
    Unprotected20,
    /// 20 claims a second that a bare client serves, without the decisions of an operator
    Bare20,
    /// 50 claims a second for 15 s on a pool of 800
    Rate50,
    /// 50 claims a second for 4 s on a pool of 500, kept while the pool is refilled
    Warm50,
    /// 50 claims a second for 10 s, served from 500 warm and kept, without refill
    Stock50,
    /// 300 claims at once on 320 warm
    Burst,
    /// One claim for 100 sandboxes on 120 warm, seven times
    Batch,
    /// A minute at rest with 1,000 warm
    Idle,
    /// 10,000 waiting claims, each with a timer
    Timers,
    /// From none to 1,000 available
    Fill,
    /// A rollout of 20 unclaimed sandboxes
    Roll,
    /// A rollout of 1,000 unclaimed sandboxes
    Roll1000,
    /// What each verb costs the API server
    Verbs,
    /// The highest rate of claims that holds while claims are released
    Sustained,
    /// First binding after a start with 10,000 warm, and memory
    Start,
    /// The same with 50,000; only where it is named
    FiftyThousand,
}

/// Names of the phases whose bursts are drawn.
const DRAWN: &str = "drawn";
const DRAWN_WITHOUT_YIELD: &str = "drawn-without-yield";

/// What takes less than five minutes together.
pub const QUICK: &[Phase] = &[Phase::Floor, Phase::Rate20, Phase::Burst, Phase::Fill];

impl Phase {
    fn name(self) -> String {
        self.to_possible_value()
            .map(|v| v.get_name().to_string())
            .unwrap_or_default()
    }

    /// Whether a run without `--only` measures the phase in this repetition. What takes minutes is measured once: it has
    /// repetitions of its own.
    fn is_due(self, repetition: usize) -> bool {
        match self {
            Self::Sustained | Self::Start => repetition == 1,
            Self::FiftyThousand => false,
            _ => true,
        }
    }

    /// Far more than any phase needs on a slow machine. A phase that reaches it hangs.
    fn time_limit(self) -> Duration {
        Duration::from_secs(match self {
            Self::Floor => 600,
            Self::Timers => 400,
            Self::Rate5
            | Self::Rate20
            | Self::Unprotected20
            | Self::Bare20
            | Self::Burst
            | Self::Batch
            | Self::Roll => 180,
            Self::Sustained | Self::Start => 900,
            Self::FiftyThousand => 5_400,
            Self::Rate50
            | Self::Warm50
            | Self::Stock50
            | Self::Idle
            | Self::Fill
            | Self::Roll1000
            | Self::Verbs => 300,
        })
    }

    /// The steady load that the phase is.
    fn rate(self) -> Option<&'static Rate> {
        match self {
            Self::Rate5 => Some(&steady::SLOW),
            Self::Rate20 => Some(&steady::BUSY),
            Self::Unprotected20 => Some(&steady::UNPROTECTED),
            Self::Rate50 => Some(&steady::HEAVY),
            Self::Warm50 => Some(&steady::WARM),
            Self::Stock50 => Some(&steady::STOCK),
            _ => None,
        }
    }

    /// Measures the phase. `beside` are all phases of the run: the floor is measured for these.
    async fn run(self, lab: &Lab<'_>, beside: &[Self]) -> Outcome<()> {
        match self {
            Self::Floor => floor::run(lab, &rates(beside)).await,
            Self::Bare20 => steady::run_bare(lab, &steady::BUSY).await,
            Self::Rate5
            | Self::Rate20
            | Self::Unprotected20
            | Self::Rate50
            | Self::Warm50
            | Self::Stock50 => steady::run(lab, self.rate().ok_or("no load")?).await,
            Self::Burst => burst::run(lab).await,
            Self::Batch => batch::run(lab).await,
            Self::Idle => idle::run(lab).await,
            Self::Timers => timers::run(lab).await,
            Self::Fill => fill::run(lab).await,
            Self::Roll => roll::run(lab).await,
            Self::Roll1000 => roll1000::run(lab).await,
            Self::Verbs => verbs::run(lab).await,
            Self::Sustained => sustained::run(lab).await,
            Self::Start => start::run(lab).await,
            Self::FiftyThousand => fifty_thousand::run(lab).await,
        }
    }
}

/// Runs the phases in `only`, or those of a default run if it is empty, `repetitions` times. The floor is measured before and after the phases of
/// the operator. Stops at the first phase that fails.
pub async fn run(lab: &Lab<'_>, only: &[Phase], repetitions: usize) -> Outcome<()> {
    for repetition in 1..=repetitions {
        println!("\nrepetition {repetition} of {repetitions}");
        let is_wanted = |phase: &&Phase| {
            if only.is_empty() {
                phase.is_due(repetition)
            } else {
                only.contains(phase)
            }
        };
        let phases: Vec<_> = Phase::value_variants()
            .iter()
            .filter(is_wanted)
            .copied()
            .collect();
        let floor_after = phases
            .first()
            .filter(|first| **first == Phase::Floor && phases.len() > 1);
        for phase in phases.iter().chain(floor_after) {
            metered(lab, &phase.name(), phase.time_limit(), phase.run(lab, &phases)).await?;
        }
    }
    Ok(())
}

/// The steady loads among `phases`, or all if there is nothing but their floor.
fn rates(phases: &[Phase]) -> Vec<&'static Rate> {
    let all = if phases == [Phase::Floor] {
        Phase::value_variants()
    } else {
        phases
    };
    all.iter().copied().filter_map(Phase::rate).collect()
}

/// Bursts to be drawn: one of the operator, and one of another without the rule that refill yields. They are others than those
/// of the figures, because the benchmark watches the pods meanwhile.
pub async fn bursts_over_time(lab: &Lab<'_>, without_yield: Option<&Path>) -> Outcome<Vec<BurstOverTime>> {
    let limit = Phase::Burst.time_limit();
    let operator = lab.start_operator(DRAWN)?;
    let burst = burst::over_time(lab, operator, DRAWN, "Refill yields to bindings");
    let mut drawn = vec![metered(lab, DRAWN, limit, burst).await?];
    if let Some(program) = without_yield {
        let operator = lab.start_other(program, DRAWN_WITHOUT_YIELD)?;
        let burst = burst::over_time(lab, operator, DRAWN_WITHOUT_YIELD, "Refill at full speed");
        drawn.push(metered(lab, DRAWN_WITHOUT_YIELD, limit, burst).await?);
    }
    Ok(drawn)
}

/// Runs a phase within its time limit, and tells the report what else ran on the machine meanwhile.
async fn metered<T>(
    lab: &Lab<'_>,
    name: &str,
    limit: Duration,
    phase: impl Future<Output = Outcome<T>>,
) -> Outcome<T> {
    println!("\n{name}");
    let meter = Meter::start(lab.dir())?;
    let outcome = tokio::time::timeout(limit, phase).await;
    let outcome = outcome.unwrap_or_else(|_| Err(format!("not over after {limit:?}").into()));
    let outcome = outcome.map_err(|error| {
        let log = lab.operator_log(name);
        format!(
            "phase {name}: {error}\nlast lines of {}:\n{}",
            log.display(),
            tail(&log)
        )
    })?;
    let shares = meter.shares(lab.dir())?;
    println!("  processors used: {shares}");
    if let Some(disturbance) = shares.surroundings.disturbance() {
        println!("  DISTURBED: {disturbance}");
    }
    lab.report().phase_is_over(name, &shares.surroundings);
    Ok(outcome)
}
