//! A bound on the arrivals bounds the size that every claim needs.

use crate::operator::Operator;
use proptest::prelude::*;
use serde_json::Value;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Arrivals are (sigma, rho)-bounded when no time of length t has more than sigma + rho * t of them.
    #[test]
    fn with_sigma_and_rho_times_the_warm_up_time_no_claim_ever_misses(
        sigma in 1_u32..8,
        rho in 0.05_f64..3.0,
        warm_up in 0.5_f64..12.0,
        gaps in proptest::collection::vec(0.0_f64..1.5, 1..300),
    ) {
        let (mut at, mut tokens) = (20.0 * warm_up, f64::from(sigma));
        let mut claims = Vec::new();
        for gap in gaps {
            at += gap;
            tokens = (tokens + rho * gap).min(f64::from(sigma));
            if tokens >= 1.0 {
                tokens -= 1.0;
                claims.push(at);
            }
        }
        let size = (f64::from(sigma) + rho * warm_up).floor() as usize;
        let mut pool = Operator::new(size, Value::Null, warm_up);
        pool.run(&claims, 0.0, at + 1.0);
        prop_assert!(claims.is_empty() || pool.figures.hit_rate() == 1.0, "{}", pool.figures.hit_rate());
    }
}
