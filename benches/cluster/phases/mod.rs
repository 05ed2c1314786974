//! Runs the phases in order, each within a time limit.

mod batch;
mod beside_floor;
mod burst;
mod fifty_thousand;
mod fill;
mod idle;
mod in_a_row;
mod many_pools;
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
use crate::speed::calculation;
use clap::ValueEnum;
use std::path::Path;
use std::time::Duration;

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Phase {
    /// 200 claims by hand, one after the other
    InARow,
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
    /// The same load, served by a bare client
    Bare50,
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
    /// 20 claims a second beside 1,000 other pools, each with a waiting claim
    ManyPools,
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

/// What takes some five minutes together.
pub const QUICK: &[Phase] = &[Phase::Rate20, Phase::Burst, Phase::Fill];

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
            Self::ManyPools | Self::Sustained | Self::Start => repetition == 1,
            Self::FiftyThousand => false,
            _ => true,
        }
    }

    /// Far more than any phase needs on a slow machine. A phase that reaches it hangs.
    fn time_limit(self) -> Duration {
        Duration::from_secs(match self {
            Self::Timers => 400,
            Self::ManyPools | Self::Sustained | Self::Start => 900,
            Self::FiftyThousand => 5_400,
            _ => 600,
        })
    }

    async fn run(self, lab: &Lab<'_>) -> Outcome<()> {
        match self {
            Self::InARow => in_a_row::run(lab).await,
            Self::Rate5 => steady::run(lab, &steady::SLOW).await,
            Self::Rate20 => steady::run(lab, &steady::BUSY).await,
            Self::Unprotected20 => steady::run(lab, &steady::UNPROTECTED).await,
            Self::Rate50 => steady::run(lab, &steady::HEAVY).await,
            Self::Warm50 => steady::run(lab, &steady::WARM).await,
            Self::Stock50 => steady::run(lab, &steady::STOCK).await,
            Self::Bare20 => steady::run_bare(lab, &steady::BARE).await,
            Self::Bare50 => steady::run_bare(lab, &steady::BARE_WARM).await,
            Self::Burst => burst::run(lab).await,
            Self::Batch => batch::run(lab).await,
            Self::Idle => idle::run(lab).await,
            Self::Timers => timers::run(lab).await,
            Self::ManyPools => many_pools::run(lab).await,
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

/// Runs the phases in `only`, or those of a default run if it is empty, `repetitions` times. Stops at the first phase that fails.
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
        for phase in Phase::value_variants().iter().filter(is_wanted) {
            let measure = || phase.run(lab);
            metered(lab, &phase.name(), phase.time_limit(), measure).await?;
        }
    }
    Ok(())
}

/// Bursts to be drawn: one of the operator, and one of another without the rule that refill yields. They are others than those
/// of the figures, because the benchmark watches the pods meanwhile.
pub async fn bursts_over_time(lab: &Lab<'_>, without_yield: Option<&Path>) -> Outcome<Vec<BurstOverTime>> {
    let limit = Phase::Burst.time_limit();
    let burst = || async {
        let operator = lab.start_operator(DRAWN)?;
        burst::over_time(lab, operator, DRAWN, "Refill yields to bindings").await
    };
    let mut drawn = vec![metered(lab, DRAWN, limit, burst).await?];
    if let Some(program) = without_yield {
        let burst = || async {
            let operator = lab.start_other(program, DRAWN_WITHOUT_YIELD)?;
            burst::over_time(lab, operator, DRAWN_WITHOUT_YIELD, "Refill at full speed").await
        };
        drawn.push(metered(lab, DRAWN_WITHOUT_YIELD, limit, burst).await?);
    }
    Ok(drawn)
}

/// Runs a phase, each try within its time limit, until the machine was quiet meanwhile or no try is left.
async fn metered<T, F>(lab: &Lab<'_>, name: &str, limit: Duration, phase: impl Fn() -> F) -> Outcome<T>
where
    F: Future<Output = Outcome<T>>,
{
    loop {
        println!("\n{name}");
        let calculated_in = calculation();
        let meter = Meter::start(lab.dir())?;
        let outcome = tokio::time::timeout(limit, phase()).await;
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
        let is_repeated = lab
            .report()
            .try_is_over(name, &shares.surroundings, calculated_in);
        if let Some(disturbance) = shares.surroundings.disturbance() {
            let consequence = if is_repeated {
                "measured again"
            } else {
                "DISTURBED"
            };
            println!("  {consequence}: {disturbance}");
        }
        if !is_repeated {
            return Ok(outcome);
        }
    }
}
