//! Waits for a condition, and reports the last state seen.

use std::thread::sleep;
use std::time::{Duration, Instant};

const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(250);

/// Calls `check` until it succeeds. Its error is the state it saw; after `seconds` that becomes the error.
pub fn until<T>(
    condition: &str,
    seconds: u64,
    mut check: impl FnMut() -> Result<T, String>,
) -> Result<T, String> {
    let deadline = Instant::now() + Duration::from_secs(seconds);
    let mut pause = FIRST_PAUSE;
    loop {
        match check() {
            Ok(found) => return Ok(found),
            Err(seen) if Instant::now() >= deadline => {
                return Err(format!("waited {seconds} s until {condition}; last seen: {seen}"));
            }
            Err(_) => sleep(pause),
        }
        pause = (pause * 3 / 2).min(LONGEST_PAUSE);
    }
}

/// Calls `check` for `seconds`, and fails as soon as it fails.
pub fn throughout(
    condition: &str,
    seconds: u64,
    mut check: impl FnMut() -> Result<(), String>,
) -> Result<(), String> {
    let end = Instant::now() + Duration::from_secs(seconds);
    while Instant::now() < end {
        check().map_err(|seen| format!("for {seconds} s, {condition}; but: {seen}"))?;
        sleep(LONGEST_PAUSE);
    }
    Ok(())
}

/// `Ok` where the condition holds, else what was seen.
pub fn ensure(holds: bool, seen: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(seen()) }
}
