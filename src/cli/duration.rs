//! Parses durations in flags as kubectl does.

use jiff::SignedDuration;
use std::time::Duration;

/// Parses a duration in Go's syntax, such as `1m30s`. As in Go, only `0` needs no unit.
///
/// # Errors
/// A sentence that says how to write a duration.
pub(super) fn parse(written: &str) -> Result<Duration, String> {
    if written == "0" {
        return Ok(Duration::ZERO);
    }
    let parsed: Option<SignedDuration> = written.parse().ok();
    parsed
        .and_then(|d| Duration::try_from(d).ok())
        .ok_or_else(|| "write a number with a unit, as in 30s, 5m or 1h30m".into())
}
