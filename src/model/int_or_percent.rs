//! What a number or a percentage comes to in whole sandboxes, and which field of a pool is rounded which way.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// How a percentage becomes a whole number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// Toward zero, as a Deployment rounds maxUnavailable.
    Down,
    /// Away from zero, as a Deployment rounds maxSurge.
    Up,
}

/// Which way each field of a pool is rounded, as its description in the CRD says (`api/pool.rs`).
impl Rounding {
    /// `updateStrategy.maxUnavailable`: down, as a Deployment rounds its own.
    pub const MAX_UNAVAILABLE: Self = Self::Down;
    /// `updateStrategy.maxSurge`: up, as a Deployment rounds its own.
    pub const MAX_SURGE: Self = Self::Up;
    /// `scaleStrategy.maxUnavailable`: up. It counts as at least 1.
    pub const WARMING: Self = Self::Up;
    /// `updateStrategy.partition`: up. [`IntOrPercent::kept_of`] says what else holds.
    const PARTITION: Self = Self::Up;
}

/// A number of sandboxes or a percentage of `replicas`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntOrPercent {
    /// A number.
    Int(u32),
    /// A percentage.
    Percent(u32),
}

impl Default for IntOrPercent {
    fn default() -> Self {
        Self::Int(0)
    }
}

impl IntOrPercent {
    /// Parses the value of `field`. Percentages are digits and `%`, as Kubernetes' `IsValidPercent` has it.
    ///
    /// # Errors
    /// A sentence saying what to write instead.
    pub fn parse(field: &str, value: &IntOrString) -> Result<Self, String> {
        let invalid = |shown: String| {
            format!("{field}: {shown} is invalid; write a number of 0 or more, or a percentage like \"25%\"")
        };
        match value {
            IntOrString::Int(n) => u32::try_from(*n)
                .map(Self::Int)
                .map_err(|_| invalid(n.to_string())),
            IntOrString::String(s) => s
                .strip_suffix('%')
                .filter(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
                .and_then(|digits| digits.parse().ok())
                .map(Self::Percent)
                .ok_or_else(|| invalid(format!("{s:?}"))),
        }
    }

    /// The number of sandboxes this comes to, out of `replicas`.
    pub fn of(self, replicas: usize, rounding: Rounding) -> usize {
        match self {
            Self::Int(n) => usize::try_from(n).unwrap_or(usize::MAX),
            Self::Percent(p) => {
                let product = replicas.saturating_mul(usize::try_from(p).unwrap_or(usize::MAX));
                match rounding {
                    Rounding::Down => product / 100,
                    Rounding::Up => product.div_ceil(100),
                }
            }
        }
    }

    /// As a partition: rounded up, but a percentage below 100 leaves at least one sandbox to the new
    /// revision, so that a canary of 1% is one sandbox and not none.
    pub fn kept_of(self, replicas: usize) -> usize {
        let kept = self.of(replicas, Rounding::PARTITION).min(replicas);
        let some = matches!(self, Self::Percent(p) if p < 100) && replicas > 1;
        if some { kept.min(replicas - 1) } else { kept }
    }

    /// A percentage above 100.
    pub fn above_all(self) -> bool {
        matches!(self, Self::Percent(p) if p > 100)
    }
}

impl std::fmt::Display for IntOrPercent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Int(n) => write!(f, "{n}"),
            Self::Percent(p) => write!(f, "{p}%"),
        }
    }
}
