//! How often how many sandboxes were requested within a warm-up time, recent arrivals weighing more than old ones.

use jiff::{SignedDuration, Timestamp};

/// Numbers up to this have a bin of their own.
const EXACT: usize = 128;
/// Bins for each doubling above: a number is rounded up by at most 1.6 %.
const PER_DOUBLING: usize = 64;
/// Larger numbers count as this one.
const MOST: usize = 1 << 20;
/// The weights are brought up to date this often within a half-life.
const UPDATES_PER_HALF_LIFE: i32 = 64;

/// A histogram with weights that decay by time. It takes 4 bytes for each bin up to the highest that was used, so 4 KiB
/// at most.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histogram {
    weights: Vec<f32>,
    decayed_at: Option<Timestamp>,
}

impl Histogram {
    /// Adds one observation of `number` at `now`. The weight of older ones halves with each `half_life`.
    pub fn add(&mut self, number: usize, now: Timestamp, half_life: SignedDuration) {
        self.decay(now, half_life);
        self.add_weight(number, 1.0);
    }

    /// Adds observations of `number` with this weight together.
    pub fn add_weight(&mut self, number: usize, weight: f32) {
        let bin = bin_of(number);
        if self.weights.len() <= bin {
            self.weights.reserve_exact(bin + 1 - self.weights.len());
            self.weights.resize(bin + 1, 0.0);
        }
        if let Some(held) = self.weights.get_mut(bin) {
            *held += weight;
        }
    }

    fn decay(&mut self, now: Timestamp, half_life: SignedDuration) {
        let since = *self.decayed_at.get_or_insert(now);
        let passed = now.duration_since(since);
        if passed.is_negative() {
            self.decayed_at = Some(now);
        } else if passed.saturating_mul(UPDATES_PER_HALF_LIFE) >= half_life {
            let factor = (-passed.as_secs_f64() / half_life.as_secs_f64()).exp2() as f32;
            self.weights.iter_mut().for_each(|weight| *weight *= factor);
            self.decayed_at = Some(now);
        }
    }

    /// How many observations the weights stand for.
    pub fn total(&self) -> f64 {
        self.total_and_mean().0
    }

    /// How many observations the weights stand for, and their mean; 0 without observations.
    pub fn total_and_mean(&self) -> (f64, f64) {
        let add = |(total, sum), (bin, weight): (usize, &f32)| {
            let weight = f64::from(*weight);
            (total + weight, sum + most_in(bin) as f64 * weight)
        };
        let (total, sum) = self.weights.iter().enumerate().fold((0.0, 0.0), add);
        (total, if total > 0.0 { sum / total } else { 0.0 })
    }

    /// The least number that is not exceeded in a `share` of the observations; 0 without observations.
    pub fn quantile(&self, share: f64) -> usize {
        let [quantile] = self.quantiles([share]);
        quantile
    }

    /// The quantiles of these shares; see [`quantile`](Self::quantile).
    pub fn quantiles<const N: usize>(&self, shares: [f64; N]) -> [usize; N] {
        let total = self.total();
        let wanted = shares.map(|share| share * total);
        let (mut quantiles, mut below) = ([0; N], 0.0);
        for (bin, weight) in self.weights.iter().enumerate() {
            if *weight > 0.0 {
                for (quantile, wanted) in quantiles.iter_mut().zip(wanted) {
                    if below < wanted || below == 0.0 {
                        *quantile = most_in(bin);
                    }
                }
                below += f64::from(*weight);
            }
        }
        quantiles
    }

    /// Forgets every observation.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

/// The bin of a number.
fn bin_of(number: usize) -> usize {
    let number = number.min(MOST);
    if number < EXACT {
        return number;
    }
    let doublings = (number / EXACT).ilog2();
    let width = (EXACT / PER_DOUBLING) << doublings;
    let start = EXACT << doublings;
    EXACT + usize::try_from(doublings).unwrap_or_default() * PER_DOUBLING + (number - start) / width
}

/// The highest number of a bin.
fn most_in(bin: usize) -> usize {
    if bin < EXACT {
        return bin;
    }
    let (doublings, step) = ((bin - EXACT) / PER_DOUBLING, (bin - EXACT) % PER_DOUBLING);
    let width = (EXACT / PER_DOUBLING) << doublings;
    (EXACT << doublings) + (step + 1) * width - 1
}

#[cfg(test)]
mod tests {
    use crate::model::demand::histogram::{Histogram, MOST, bin_of, most_in};
    use jiff::{SignedDuration, Timestamp};

    #[test]
    fn a_number_is_rounded_up_by_less_than_two_percent() {
        for number in (0..5_000).chain((5_000..MOST).step_by(997)) {
            let rounded = most_in(bin_of(number));
            assert!(
                rounded >= number && rounded <= number + number / 60,
                "{number}: {rounded}"
            );
        }
    }

    #[test]
    fn after_a_half_life_an_old_observation_counts_half() {
        let (mut histogram, hour) = (Histogram::default(), SignedDuration::from_hours(1));
        histogram.add(7, Timestamp::UNIX_EPOCH, hour);
        histogram.add(9, Timestamp::UNIX_EPOCH + hour, hour);
        assert!((histogram.total() - 1.5).abs() < 1e-6);
        assert_eq!((histogram.quantile(0.3), histogram.quantile(0.4)), (7, 9));
    }
}
