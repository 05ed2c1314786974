//! Other ways to choose a size, by their documented rules, on a pool that replaces what is claimed.

use crate::arrivals::Arrivals;
use crate::figures::Figures;
use std::collections::VecDeque;

/// Chooses sizes at regular times.
pub trait Rule {
    /// Seconds between two decisions.
    fn period(&self) -> f64;
    /// The size from `now` on, from what arrived before.
    fn decide(&mut self, now: f64, arrived: &[f64]) -> usize;
    /// Whether what claims take is replaced at once, or only with the next decision.
    fn replaces_at_once(&self) -> bool {
        true
    }
}

/// The same size all the time.
pub struct Fixed(pub usize);

impl Rule for Fixed {
    fn period(&self) -> f64 {
        f64::INFINITY
    }

    fn decide(&mut self, _: f64, _: &[f64]) -> usize {
        self.0
    }
}

/// The least fixed size with which this share of the claims from `from` on finds a sandbox: known only afterwards.
pub fn best_fixed(arrivals: &Arrivals, warm_up: f64, from: f64, share: f64) -> Fixed {
    let mut first = 0;
    let mut needed = Vec::new();
    for (last, at) in arrivals.iter().enumerate() {
        while arrivals[first] <= at - warm_up {
            first += 1;
        }
        if *at >= from {
            needed.push(last - first + 1);
        }
    }
    needed.sort_unstable();
    Fixed(needed[((needed.len() as f64 * share).ceil() as usize).max(1) - 1])
}

/// A buffer of a fixed number of available sandboxes, restored every 30 s: the Buffer policy of a game-server fleet.
pub struct PolledBuffer(pub usize);

impl Rule for PolledBuffer {
    fn period(&self) -> f64 {
        30.0
    }

    fn decide(&mut self, _: f64, _: &[f64]) -> usize {
        self.0
    }

    fn replaces_at_once(&self) -> bool {
        false
    }
}

/// A HorizontalPodAutoscaler with its defaults on an external metric: the claims of the last minute, as Prometheus has them
/// after a scrape every 30 s. Its target is one sandbox for each claim within two warm-up times.
pub struct Hpa {
    warm_up: f64,
    size: usize,
    ceiling: usize,
    recommended: VecDeque<(f64, usize)>,
}

impl Hpa {
    pub fn new(warm_up: f64, floor: usize, ceiling: usize) -> Self {
        Self {
            warm_up,
            size: floor,
            ceiling,
            recommended: VecDeque::new(),
        }
    }
}

impl Rule for Hpa {
    fn period(&self) -> f64 {
        15.0
    }

    fn decide(&mut self, now: f64, arrived: &[f64]) -> usize {
        let scraped = (now / 30.0).floor() * 30.0;
        let last_minute = arrived.iter().rev().skip_while(|at| **at > scraped);
        let claims = last_minute.take_while(|at| **at > scraped - 60.0).count() as f64;
        let wanted = claims / 60.0 * 2.0 * self.warm_up;
        let ratio = wanted / self.size as f64;
        // Within the tolerance of 10 % nothing changes.
        let recommended = if (ratio - 1.0).abs() <= 0.1 {
            self.size
        } else {
            wanted.ceil() as usize
        };
        let recommended = recommended.clamp(1, self.ceiling);
        self.recommended.push_back((now, recommended));
        // The highest of the last 300 s counts on the way down; up it goes by 100 % or 4 pods in 15 s.
        self.recommended.retain(|(at, _)| *at >= now - 300.0);
        let highest = self.recommended.iter().map(|(_, size)| *size).max().unwrap();
        let fastest = (self.size * 2).max(self.size + 4);
        self.size = if recommended > self.size {
            recommended.min(fastest)
        } else {
            self.size.min(highest)
        };
        self.size
    }
}

/// Serves the claims with the sizes of a rule. Figures count from `from` on.
pub fn run(rule: &mut impl Rule, arrivals: &Arrivals, warm_up: f64, from: f64, end: f64) -> Figures {
    let mut figures = Figures::default();
    let mut size = rule.decide(0.0, &[]);
    let (mut available, mut waiting, mut starting) = (size, 0_usize, VecDeque::new());
    let (mut now, mut next_decision) = (0.0, rule.period());
    let mut arrived = 0;
    loop {
        let ready = starting.front().copied().unwrap_or(f64::INFINITY);
        let arrival = arrivals.get(arrived).copied().unwrap_or(f64::INFINITY);
        let next = ready.min(arrival).min(next_decision).min(end);
        let counted = next - f64::max(now, from);
        if counted > 0.0 {
            figures.pass(counted, size, available);
        }
        figures.sample(next, size);
        now = next;
        if next >= end {
            return figures;
        }
        let mut restores = rule.replaces_at_once();
        if next == ready {
            starting.pop_front();
            available += 1;
        } else if next == arrival {
            arrived += 1;
            if now >= from {
                figures.claim(available > waiting);
            }
            waiting += 1;
        } else {
            next_decision += rule.period();
            size = rule.decide(now, &arrivals[..arrived]);
            restores = true;
        }
        let served = waiting.min(available);
        (waiting, available) = (waiting - served, available - served);
        if restores {
            let surplus = (available + starting.len()).saturating_sub(size + waiting);
            available -= surplus.min(available);
            let missing = (size + waiting).saturating_sub(available + starting.len());
            starting.extend(std::iter::repeat_n(now + warm_up, missing));
        }
    }
}
