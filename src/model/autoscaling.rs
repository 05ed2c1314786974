//! The field `autoscaling` of a pool, checked and in numbers.

use crate::api::autoscaling::Autoscaling;
use crate::model::schedule::Schedule;
use jiff::SignedDuration;

/// How a pool chooses its size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedAutoscaling {
    /// Most unclaimed sandboxes to keep warm.
    pub max_replicas: usize,
    /// Share of claims that are to find a sandbox available, as written.
    pub target: HitRate,
    /// How long a smaller size must have been enough before the pool shrinks.
    pub window: SignedDuration,
    /// Minimum sizes by time of day.
    pub schedules: Vec<Schedule>,
}

/// A share of claims in hundredths of a percent, above 0 and below 100 %.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HitRate(u16);

/// The hit rates whose sizes the status of a pool lists, so that a person can compare them.
pub const COMMON_HIT_RATES: [HitRate; 4] = [HitRate(9000), HitRate(9500), HitRate(9900), HitRate(9990)];

impl HitRate {
    /// Parses a percentage with up to two decimals.
    pub fn parse(text: &str) -> Option<Self> {
        let number = text.strip_suffix('%')?;
        let (whole, decimals) = number.split_once('.').unwrap_or((number, "0"));
        let digits = |text: &str, most: usize| {
            (1..=most).contains(&text.len()) && text.bytes().all(|digit| digit.is_ascii_digit())
        };
        if !digits(whole, 2) || !digits(decimals, 2) {
            return None;
        }
        let hundredths: u16 = format!("{decimals:0<2}").parse().ok()?;
        let share = whole.parse::<u16>().ok()? * 100 + hundredths;
        (share > 0).then_some(Self(share))
    }

    /// The share as a number between 0 and 1.
    pub fn share(self) -> f64 {
        f64::from(self.0) / 10_000.0
    }
}

impl std::fmt::Display for HitRate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (whole, hundredths) = (self.0 / 100, self.0 % 100);
        match (hundredths, hundredths % 10) {
            (0, _) => write!(f, "{whole}%"),
            (_, 0) => write!(f, "{whole}.{}%", hundredths / 10),
            _ => write!(f, "{whole}.{hundredths:02}%"),
        }
    }
}

impl ResolvedAutoscaling {
    /// Checks the field of a pool whose `spec.replicas` is `replicas`.
    ///
    /// # Errors
    /// A sentence that names the field and says what to write instead.
    pub fn resolve(written: &Autoscaling, replicas: usize) -> Result<Self, String> {
        let max_replicas = usize::try_from(written.max_replicas).unwrap_or_default();
        if max_replicas < replicas.max(1) {
            return Err(format!(
                "spec.autoscaling.maxReplicas: {} is below spec.replicas {replicas}; write {} or more",
                written.max_replicas,
                replicas.max(1)
            ));
        }
        let target = HitRate::parse(&written.target_hit_rate).ok_or_else(|| {
            format!(
                "spec.autoscaling.targetHitRate: {:?} is not a percentage above 0% and below 100%; write for example \"99%\"",
                written.target_hit_rate
            )
        })?;
        let seconds = written.stabilization_window_seconds;
        if seconds < 0 {
            return Err(format!(
                "spec.autoscaling.stabilizationWindowSeconds: {seconds} is negative; write 0 or more"
            ));
        }
        let schedules = written.schedules.iter().map(|schedule| {
            let field = format!("spec.autoscaling.schedules[{}]", schedule.name);
            Schedule::parse(&field, schedule)
        });
        let schedules = schedules.collect::<Result<Vec<_>, _>>()?;
        let above = |schedule: &&Schedule| schedule.min_replicas > max_replicas;
        if let Some(schedule) = schedules.iter().find(above) {
            return Err(format!(
                "spec.autoscaling.schedules[{}].minReplicas: {} is above maxReplicas {max_replicas}",
                schedule.name, schedule.min_replicas
            ));
        }
        Ok(Self {
            max_replicas,
            target,
            window: SignedDuration::from_secs(seconds.into()),
            schedules,
        })
    }
}
