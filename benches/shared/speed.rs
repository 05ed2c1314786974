//! Times a fixed calculation, which shows how fast the machine is at the moment.

use rustix::time::{ClockId, clock_gettime};
use std::hint::black_box;
use std::time::Duration;

/// Rounds of the calculation: some 50 ms.
const ROUNDS: u64 = 25_000_000;

/// How long the calculation takes now, in processor time of this thread. What other processes take of the processors is measured
/// on its own and is no part of it.
pub fn calculation() -> Duration {
    let used = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default();
    let before = used();
    black_box(mixed(black_box(ROUNDS)));
    used().saturating_sub(before)
}

/// A number that each round changes by shifts and one multiplication. No round begins before the one before it has ended.
fn mixed(rounds: u64) -> u64 {
    (0..rounds).fold(1, |mixed, round| {
        (mixed ^ (mixed >> 29) ^ round).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    })
}

/// Says how much the speed varied between calculations; `None` with fewer than two of them.
pub fn variation(took: &[Duration]) -> Option<String> {
    let (least, most) = (took.iter().min()?, took.iter().max()?);
    let milliseconds = |time: &Duration| time.as_secs_f64() * 1e3;
    let times = most.as_secs_f64() / least.as_secs_f64().max(f64::EPSILON);
    (took.len() > 1).then(|| {
        format!(
            "The machine's speed varied by a factor of {times:.2} between phases: the same calculation took {:.0} to {:.0} ms.",
            milliseconds(least),
            milliseconds(most)
        )
    })
}
