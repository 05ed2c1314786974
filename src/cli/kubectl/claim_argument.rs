//! Parses an argument that names a claim.

use crate::cli::kubectl::why::target::{Kind, Target, TargetError};
use std::str::FromStr;

/// The name of a claim, parsed from `run-42`, `claim/run-42` or `sbc/run-42`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ClaimName(pub(super) String);

impl FromStr for ClaimName {
    type Err = TargetError;

    fn from_str(written: &str) -> Result<Self, Self::Err> {
        let target: Target = written.parse()?;
        match target.kind {
            None | Some(Kind::Claim) => Ok(Self(target.name)),
            Some(Kind::Pool | Kind::Pod) => Err(TargetError::NotAClaim(written.into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::cli::kubectl::claim_argument::ClaimName;
    use crate::cli::kubectl::why::target::TargetError;

    #[test]
    fn a_claim_is_named_with_or_without_its_kind() {
        for written in [
            "run-42",
            "claim/run-42",
            "sbc/run-42",
            "sandboxclaim.warmpool.dev/run-42",
        ] {
            assert_eq!(written.parse(), Ok(ClaimName("run-42".into())), "{written}");
        }
        let pool: Result<ClaimName, _> = "pool/python".parse();
        assert_eq!(pool, Err(TargetError::NotAClaim("pool/python".into())));
    }
}
