//! Random arrivals of claims, the same for the same seed.

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

/// When claims arrive, in seconds, in order.
pub type Arrivals = Vec<f64>;

/// Arrivals at a rate per second that depends on the time, in batches of `batch` on average (geometric). The rate counts
/// claims and never exceeds `most`.
pub fn arrivals(seed: u64, seconds: f64, most: f64, batch: f64, rate: impl Fn(f64) -> f64) -> Arrivals {
    let mut random = StdRng::seed_from_u64(seed);
    let (mut at, mut all) = (0.0, Vec::new());
    loop {
        at -= (1.0 - random.random::<f64>()).ln() / (most / batch);
        if at >= seconds {
            return all;
        }
        if random.random::<f64>() * most < rate(at) {
            all.push(at);
            while random.random::<f64>() >= 1.0 / batch {
                all.push(at);
            }
        }
    }
}

/// One claim after the other at a steady rate.
pub fn poisson(seed: u64, seconds: f64, rate: f64) -> Arrivals {
    arrivals(seed, seconds, rate, 1.0, |_| rate)
}
